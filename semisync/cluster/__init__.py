"""Processes of a cluster: starting them on this machine, starting together, ending together."""
