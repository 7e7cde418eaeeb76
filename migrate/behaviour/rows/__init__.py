"""The rows of a data set that both sides compute.

`drawn` samples rows that include rare values; `reading` reads them in batches.
"""
