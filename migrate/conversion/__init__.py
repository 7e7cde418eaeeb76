"""Carrying out a plan: streaming tensors from a checkpoint into a target.

convert   the order of the work
items     every tensor that a plan writes, and its name in the target
layout    the files that are made for them
job       what is to be done and what has been done, on disk: what resumes
ranks     several processes that share one conversion
manifest  what was written
"""
