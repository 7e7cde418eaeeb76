"""The ops that an emitted model may have: how each is written in Python."""
