"""A first look at what a comparison is made of, before anything is converted or run: every finding
at once.

    fed         what each side takes of a row, and what must be fed beside it
    columns     all rows of the columns: types, missing values, ids, labels, keys

Each finding is the error that the comparison would end with, by the same function, or is told of
more rows than the first.
"""
