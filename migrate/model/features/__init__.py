"""The transformations of raw features as data: features.json, beside model.py."""
