"""A cluster's processes: started on this machine, starting together, ending together."""
