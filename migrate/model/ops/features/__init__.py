"""Ops on raw features: strings, lookup tables, sparse and ragged tensors, sets."""
