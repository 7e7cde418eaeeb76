"""Hash tables on their way to TorchRec: raw 64-bit ids become rows of an embedding table.

    sorted_tables  all of this for every table of a plan, in the directory of the conversion
    runs           1. a table sorted piece by piece on disk
    merging        2. from sorted pieces to one order of the ids
    placing        3. from that order to the rows of the target: which row of the pieces each one is
    hashing        where TorchRec's HashZchManagedCollisionModule looks for an id

`migrate.stream.columns` then reads the rows in the order of the target. Memory does not grow with a
table: the data that grows with it lies in files of the conversion's directory.
"""
