"""The TensorFlow end of `semisync score` and `verify`: the folder is a program, `python tf_child`.

It runs in the user's interpreter, which has TensorFlow (1.15 or later) and numpy, but not this
project: its modules import only each other, and keep to the syntax of Python 3.7.
"""
