"""What the zoo keeps of a trained model, for others to be compared with.

    inputs.npz     what the graph is fed, by feed point (`feeding`), without labels
    outputs.npz    {output: value} of the evaluation graph for these inputs
    steps.npz      "K/POINT": what step K is fed, labels and flags too; "K/TENSOR" of what the loss
                   draws at random; "loss": of each step, before its update
    steps/K.npz    every variable and slot after step K, by its name in the checkpoint; 0: as saved
    model.json     what is where, and how it was trained: `describe`

All values are TensorFlow's own, from one thread.
"""

import os
from typing import Any, Dict

import numpy as np
import tensorflow.compat.v1 as tf

from tests.model.zoo import feeding, log
from tests.model.zoo.graphs import session
from tests.model.zoo.model import EVALUATION, STEPS, TRAINING
from tests.support.variables import load

EVALUATED = 48  # rows
SIZES = [32, 32, 7, 1, 32]  # of the batches of the steps, again and again


def record_outputs(entry, graphs, prefix, folder):
    """Writes inputs.npz and outputs.npz."""
    graph, model = graphs.built(EVALUATION)
    found = feeding.values(model.inputs, entry.rows(EVALUATED, seed=5, odd=True))
    fed = feeding.feed(model.inputs, found)
    fed.update(feeding.flags(model, "evaluation"))
    with graph.as_default(), session() as running:
        restore(running, prefix)
        outputs = running.run(model.outputs, fed)
    np.savez(os.path.join(folder, "inputs.npz"), **found)
    np.savez(os.path.join(folder, "outputs.npz"), **outputs)


def record_steps(entry, graphs, prefix, folder, count):
    """Writes steps.npz and steps/."""
    os.mkdir(os.path.join(folder, "steps"))
    graph, model = graphs.built(STEPS)
    with graph.as_default(), session() as running:
        states, losses = (stored_values(), tf.global_variables()), []
        kept: Dict[str, Any] = {}
        restore(running, prefix)
        state, before = running.run(states)
        _save_state(folder, 0, state)
        rows = entry.rows(100, seed=7, odd=True)
        first = 0
        for step in range(count):
            last = first + SIZES[step % len(SIZES)]
            found, fed = _fed(model, log.take(rows, first, last))
            if model.drawn:
                drawn = dict(zip(model.drawn, running.run(model.drawn, fed)))
                fed.update(drawn)
                found.update((tensor.name, value) for tensor, value in drawn.items())
            kept.update(("{}/{}".format(step, name), value) for name, value in found.items())
            losses.append(running.run(model.loss, fed))
            load(running, dict(zip(states[1], before)))  # a loss may move BatchNorm's statistics
            running.run(model.train_op, fed)
            state, before = running.run(states)
            _save_state(folder, step + 1, state)
            first = last
    np.savez(os.path.join(folder, "steps.npz"), loss=np.array(losses), **kept)


def restore(running, prefix):
    """Restores all variables and initialises the tables."""
    tf.train.Saver().restore(running, prefix)
    running.run(tf.tables_initializer())


def stored_values():
    """{name in the checkpoint: tensor} of all variables; the parts of one variable joined."""
    whole: Dict[str, list] = {}
    for variable in tf.global_variables():
        whole.setdefault(_stored(variable), []).append(variable)
    return {name: _joined(parts) for name, parts in whole.items()}


def describe(graphs, prefix, name, modes):
    """What model.json says; the names are those of the saved MetaGraph."""
    graph, model = graphs.built(TRAINING)
    checkpoint = os.path.basename(prefix)
    with graph.as_default():
        _check_names(graph, prefix + ".meta")
        return {
            "name": name,
            "tensorflow": tf.__version__,
            "checkpoint": checkpoint,
            "meta_graph": checkpoint + ".meta",
            "inputs": feeding.described(model.inputs),
            "labels": feeding.described(model.labels),
            "flags": [_flag(flag) for flag in model.flags],
            "outputs": {key: tensor.name for key, tensor in sorted(model.outputs.items())},
            "loss": model.loss.name,
            "train_op": model.train_op.name,
            "drawn": [tensor.name for tensor in model.drawn],
            "built_for_training": modes,
            "optimizers": [_optimizer(each) for each in model.optimizers],
            "trainable": sorted({_stored(each) for each in tf.trainable_variables()}),
        }


def _check_names(graph, meta):
    """An Estimator builds its own graph: that it is this one is what model.json relies on."""
    saved = tf.MetaGraphDef()
    with open(meta, "rb") as file:
        saved.ParseFromString(file.read())
    nodes = {node.name: (node.op, list(node.input)) for node in saved.graph_def.node}
    for node in graph.as_graph_def().node:
        if nodes.get(node.name) != (node.op, list(node.input)):
            raise AssertionError("{} is another in {}".format(node.name, meta))


def _fed(model, rows):
    tensors = dict(model.inputs, **model.labels)
    found = feeding.values(tensors, rows)
    fed = feeding.feed(tensors, found)
    for tensor, value in feeding.flags(model, "steps").items():
        fed[tensor] = value
        found[feeding.point(tensor)] = np.asarray(value)
    return found, fed


def _save_state(folder, step, values):
    np.savez(os.path.join(folder, "steps", "{}.npz".format(step)), **values)


def _joined(parts):
    """The value of a variable from the variables that are its parts."""
    infos = [part._get_save_slice_info() for part in parts]
    if infos[0] is None:
        return tf.identity(parts[0])
    parts = sorted(zip((info.var_offset for info in infos), parts), key=lambda part: part[0])
    shapes = zip(infos[0].full_shape, infos[0].var_shape)
    cut = [axis for axis, (full, own) in enumerate(shapes) if full != own] or [0]
    return tf.concat([tf.identity(part) for _, part in parts], cut[0])


def _stored(variable):
    info = variable._get_save_slice_info()
    return info.full_name if info else variable.op.name


def _flag(flag):
    return {
        "point": feeding.point(flag.tensor),
        "tensor": flag.tensor.name,
        "training": flag.training,
        "evaluation": flag.evaluation,
        "steps": flag.steps,
    }


def _optimizer(trained):
    """The settings are its own attributes; a learning rate that varies is named by its tensor."""
    said = vars(trained.optimizer)
    settings = {
        key.strip("_"): value
        for key, value in said.items()
        if isinstance(value, (bool, int, float)) and not key.startswith("_self")
    }
    rate = said.get("_learning_rate", said.get("_lr"))
    settings.pop("lr", None)
    settings["learning_rate"] = rate.name if isinstance(rate, tf.Tensor) else rate
    return {
        "class": type(trained.optimizer).__name__,
        "settings": settings,
        "slots": trained.optimizer.get_slot_names(),
        "variables": sorted({_stored(variable) for variable in trained.variables}),
    }
