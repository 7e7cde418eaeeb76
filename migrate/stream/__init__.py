"""A row's way to disk.

item     what a tensor of the target is made from
regions  where its rows come to lie in the files
columns  rows of hash tables, fetched in the order of the target
writing  read, transform, hash, write, sync, report
"""
