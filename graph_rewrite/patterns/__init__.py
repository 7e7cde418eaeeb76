"""Declarations of subgraphs, one concept per file, in the language of `patterns.language`."""
