"""Hash tables on their way to TorchRec: raw 64-bit ids become rows of an embedding table.

    modes      the four ways in which the target finds the row of an id
    states     which optimizer's slots a table has
    agreement  does a plan's table fit the source?
    hashing    where TorchRec's HashZchManagedCollisionModule looks for an id
    sorting    the order of many numbers
    runs       a table sorted piecewise on the disk
    merging    from sorted pieces to one order of the ids
    placing    from that order to the rows of the target: which row of the pieces each one is
    staging    all of this for every table of a plan, in the directory of the conversion
    columns    reading the rows that a target wants from there
    items      the tensors and files of the target
    summary    what the manifest says of a table
    comparing  does the target hold every id, row and slot of the source?

Memory does not grow with a table: what grows lies in files of the conversion's directory.
"""
