"""Values of TensorFlow's variables, to and fro in one run.

`variable.load` runs once per variable, and TensorFlow prepares the whole graph for each of these
runs: with a model's variables and slots, that takes longer than the training that a test is about.
"""

import numpy as np

from semisync.common.compat import tf


def load(session, values):
    """Loads {variable: array}, as `variable.load` does."""
    fed = {variable.initializer.inputs[1]: value for variable, value in values.items()}
    assert len(fed) == len(values), "two variables have one initial value"
    session.run([variable.initializer for variable in values], fed)


def whole(session):
    """{name in a checkpoint: value} of every variable of the default graph, parts as one."""
    parts = {}
    for one in tf.global_variables():
        info = one._get_save_slice_info()
        name = one.op.name if info is None else info.full_name
        parts.setdefault(name, []).append((0 if info is None else info.var_offset[0], one))
    ordered = {
        name: [one for _, one in sorted(each, key=lambda part: part[0])]
        for name, each in parts.items()
    }
    return {
        name: values[0] if len(values) == 1 else np.concatenate(values)
        for name, values in session.run(ordered).items()
    }


def under(prefix, values):
    """The values, by the names that a job's file gives them."""
    return {"{}/{}".format(prefix, key.split(":")[0]): value for key, value in values.items()}
