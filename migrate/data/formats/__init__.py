"""One module per format: the rows of a file's blocks, and a block as checked columns."""
