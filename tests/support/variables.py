"""Values for TensorFlow's variables, in one run.

`variable.load` runs once per variable, and TensorFlow prepares the whole graph for each of these
runs: with a model's variables and slots, that takes longer than the training that a test is about.
"""


def load(session, values):
    """Loads {variable: array}, as `variable.load` does."""
    fed = {variable.initializer.inputs[1]: value for variable, value in values.items()}
    assert len(fed) == len(values), "two variables have one initial value"
    session.run([variable.initializer for variable in values], fed)
