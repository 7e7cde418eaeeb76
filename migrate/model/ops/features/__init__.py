"""Ops on features as they come: strings, lookup tables, sparse and ragged tensors, sets."""
