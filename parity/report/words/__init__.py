"""A comparison in plain sentences, the same on the terminal, in the report and for a CI.

verdict.py    the first sentence, and its evidence
advice.py     the next steps, and the verdict's limits
details.py    gates, days, slices and suspects
subject.py    which columns of which files were compared
"""
