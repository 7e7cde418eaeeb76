"""The TensorFlow end of `semisync score` and `verify`: the folder is a program, `python tf_child`.

It runs in the user's interpreter, which has TensorFlow (1.15 or later) and numpy and nothing of
this project: its modules import each other alone, and keep to the syntax of Python 3.7.
"""
