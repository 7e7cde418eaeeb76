"""Which rows of a data set both sides are given, and how far their scores of all rows are apart.

reading   batches of a data set's rows, all or some of them
drawn     some rows of many, in which what is rare occurs
scores    the scores of all rows, from the files of both sides
"""
