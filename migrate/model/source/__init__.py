"""The Python source of a model: statements, names, the file."""
