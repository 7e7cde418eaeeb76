"""A comparison in plain sentences, the same on the terminal, in the report and for a CI.

verdict.py    the first sentence, and what it rests on
advice.py     what to do about it, and what it does not cover
details.py    gates, days, slices and suspects
subject.py    which columns of which files were compared
"""
