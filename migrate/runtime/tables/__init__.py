"""Tables of a model: vocabularies, rows that no TorchRec collection holds, rows by raw id."""
