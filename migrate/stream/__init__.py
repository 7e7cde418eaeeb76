"""A row's way to disk.

item     the sources of a tensor of the target
regions  where its rows come to lie in the files
columns  rows of hash tables, fetched in the order of the target
writing  read, transform, hash, write, sync, report
"""
