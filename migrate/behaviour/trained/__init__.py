"""Training model.py: its own module before the graph's loss.

loss        what is trained: model.py, and what of the loss is the graph's
taps        which tensors of model.py the loss is computed from
joined      both as one module
listening   what a module does while it runs: its dropouts, its draws, what its sigmoids are of
dropouts    are the dropouts of model.py those of the graph?
asked       what TensorFlow is asked of a step
"""
