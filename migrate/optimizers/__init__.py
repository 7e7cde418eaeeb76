"""TensorFlow's optimizers: their slots and formulas, and their counterparts in torch.

One module per optimizer holds its record: `adagrad.py` is all that this project knows of
Adagrad. `record` is the type, `registry` lists the records, `slots` reads one variable's slots by
them. All other folders take these facts from here.
"""
