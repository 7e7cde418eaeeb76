"""Changing a graph: editing a MetaGraphDef, detaching ops, and the exporting worker's devices."""
