"""Optimizers: which slots belong to which, and what fills them."""
