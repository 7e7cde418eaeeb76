"""The rows of a data set that both sides compute, and the comparison of their scores of all rows.

`drawn` samples rows that include rare values; `reading` reads them in batches; `score_files`
compares the scores of all rows that both sides wrote.
"""
