"""Declarations of subgraphs, one concept a file, in the language of `graph_rewrite.pattern`."""
