"""Subgraphs that torch has a module for, recognised at their last node.

A new layer is a function from (Subject, Node) to a Layer or None, and a line in `FINDERS`.
"""
