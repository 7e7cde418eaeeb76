"""A first look at the inputs of a comparison, before anything is converted or run: every finding at
once.

    fed         the columns that each side takes, and the constants that must be fed
    columns     all rows of the columns: types, missing values, ids, labels, keys

Each finding is the error with which the comparison would end, by the same function, or covers more
rows than the first.
"""
