"""Writes what TensorFlow knows of its optimizers; run as a script by either TensorFlow.

    python write_slots.py OUT

OUT/slots.json: by the optimizer's name, for ref and resource variables, each slot's name as
`get_slot` takes it -> the last part of its variable's name, its value before the first step, and
the defaults of the constructor. OUT/ops.json: training op -> names of its inputs and attributes.
"""

import inspect
import json
import sys

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

contrib = None
if tf.__version__ >= "2":
    tf = tf.compat.v1
    tf.disable_v2_behavior()
else:
    from tensorflow.contrib import opt as contrib

train = tf.train


def optimizers():
    """(name of the record, a function that makes the optimizer)."""
    yield "Adadelta", lambda: train.AdadeltaOptimizer(0.1)
    yield "Adagrad", lambda: train.AdagradOptimizer(0.1)
    yield "AdagradDA", lambda: train.AdagradDAOptimizer(0.1, train.get_or_create_global_step())
    yield "Adam", lambda: train.AdamOptimizer(0.1)
    yield "Ftrl", lambda: train.FtrlOptimizer(0.1)
    yield "Momentum", lambda: train.MomentumOptimizer(0.1, 0.9)
    yield "ProximalAdagrad", lambda: train.ProximalAdagradOptimizer(0.1)
    yield "RMSProp", lambda: train.RMSPropOptimizer(0.1)
    yield "RMSProp, centered", lambda: train.RMSPropOptimizer(0.1, centered=True)
    if contrib is not None:
        yield "AdaMax", lambda: contrib.AdaMaxOptimizer(0.1)
        yield "LazyAdam", lambda: contrib.LazyAdamOptimizer(0.1)


def slots_of(make, resource):
    with tf.Graph().as_default(), tf.Session() as session:
        optimizer = make()
        variable = tf.get_variable("user", [3, 2], use_resource=resource)
        optimizer.apply_gradients([(tf.ones([3, 2]), variable)])
        session.run(tf.global_variables_initializer())
        arguments = inspect.signature(type(optimizer).__init__).parameters
        found = {}
        for name in optimizer.get_slot_names():
            slot = optimizer.get_slot(variable, name)
            leaf = slot.op.name.rpartition("/")[2]
            (value,) = set(session.run(slot).flatten().tolist())
            found[name] = {"leaf": leaf, "initial": value}
        defaults = {
            name: argument.default
            for name, argument in arguments.items()
            if isinstance(argument.default, float)
        }
        return {"slots": found, "defaults": defaults}


def definition(op):
    if hasattr(op_def_registry, "get"):
        return op_def_registry.get(op)
    return op_def_registry.get_registered_ops()[op]


def main(out):
    slots = {
        "{} {}".format(name, "resource" if resource else "ref"): slots_of(make, resource)
        for name, make in optimizers()
        for resource in (False, True)
    }
    ops = {}
    for name in dir(tf.raw_ops):
        if name.startswith(("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply")):
            defined = definition(name)
            inputs = [argument.name for argument in defined.input_arg]
            ops[name] = {"inputs": inputs, "attributes": [one.name for one in defined.attr]}
    for name, content in (("slots", slots), ("ops", ops)):
        with open("{}/{}.json".format(out, name), "w") as file:
            json.dump(content, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
