"""Training model.py: its own module before the graph's loss.

loss        the trained module: model.py, and the graph's part of the loss
taps        the tensors of model.py from which the loss is computed
joined      both as one module
listening   the intercepted ops of a run: its dropouts, its random ops, its sigmoids' inputs
dropouts    are the dropouts of model.py those of the graph?
asked       the tensors that are fetched from TensorFlow's steps
"""
