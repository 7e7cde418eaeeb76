"""Which rows of a data set both sides are given, and how far their scores of all rows are apart.

`drawn` chooses some rows of many, in which what is rare occurs; `reading` brings them in batches;
`score_files` compares the scores that both sides wrote of all rows.
"""
