"""Reading a graph: an index over its nodes, what its ops do, its functions and conditions."""
