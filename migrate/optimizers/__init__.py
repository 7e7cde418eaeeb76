"""What TensorFlow's optimizers keep and compute, and what continues them in torch.

One module per optimizer holds its record: `adagrad.py` says everything that this project knows of
Adagrad. `record` is the type, `registry` lists the records, `slots` reads one variable's slots by
them. All other folders take these facts from here.
"""
