"""Carrying out a plan: streaming tensors from a checkpoint into a target.

convert   the order of the work
items     every tensor that a plan writes, and its name in the target
layout    the files that are made for them
job       the work and its progress, on disk: the state to resume from
ranks     several processes that share one conversion
manifest  the record of the result
"""
