"""Changing a graph: editing a GraphDef, taking ops out of it, and what is left idle by that."""
