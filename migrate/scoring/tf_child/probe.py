"""A TensorFlow graph whose tensors can be fetched, and which takes training steps."""

from typing import Any

import numpy as np

from .exporting import export
from .graph import refuse_unfed
from .opened import Opened
from .rounding import Rounding


class Probe(Opened):
    """A graph whose tensors are fetched and whose training steps are taken.

    Args:
        spec: as of `Opened`, with

            fetches     names of tensors that will be asked for
            weights     nodes of the variables that the model computes with
            steps       None, or how it trains, a dict with
              loss        name of the loss
              ops         nodes that make a step
              drawn       tensors drawn at random; a step draws them once, and feeds them
              watched     tensors that the first step returns
              rates       tensors that a step reads before it moves anything
              gradients   {node of a variable: [values, indices]}, tensors of its gradient; indices
                          are None if it is dense
              variables   {name: nodes}: those to report, each with the nodes of its parts, in order
              tables      {name: shards}: the same of tables by raw id, each with the names of the
                          tensors of each shard's ids and rows
              moved       nodes of the variables that computing the loss changes
              begun       nodes that initialise state that the checkpoint lacks

    Raises:
        Refused, Exception: it is not supported, or TensorFlow raises an error.
    """

    def __init__(self, spec):
        super().__init__(spec)
        fed = self._fed() + list(self._constants)
        for name in spec["fetches"]:
            refuse_unfed(self._tensor(name), fed)
        weights = [self._graph.get_operation_by_name(name) for name in spec["weights"]]
        self._rounding = Rounding(self, weights, _read, _assign)
        self._steps: Any = None
        if spec["steps"] is not None:
            self._steps = Steps(self, spec["steps"], fed, self._rounding)

    def answer(self, head, arrays):
        """(head, arrays) of the answer to a question of `messages`."""
        if "onnx" in head:
            inputs = [self._tensor(name) for name in head["inputs"]]
            model, why = export(self._tf, self._session, self._constants, inputs, head["onnx"])
            return {"why": why}, [] if model is None else [("model", model)]
        if "fetch" in head:
            values = self._fetch(head["rows"], arrays, head["fetch"], head["rounding"])
            return {}, [(str(i), value) for i, value in enumerate(values)]
        if "begin" in head:
            return {}, self._steps.begin(head["rows"], arrays, head["begin"] == "twice")
        return {}, self._steps.finish() if head["step"] == "finish" else self._steps.rounding()

    def _fetch(self, rows, arrays, names, rounding):
        """The values of tensors for a batch; or their rounding."""
        tensors = [self._tensor(name) for name in names]
        if not rounding:
            return self._session.run(tensors, self._feed(rows, arrays))

        def run(feed, order):
            values = self._session.run(tensors, feed)
            if order is None:
                return values
            # The inverse of the permutation.
            back = np.argsort(order)
            return [one[back] if one.shape[:1] == (rows,) else one for one in values]

        return self._rounding.largest(rows, arrays, run, {})


class Steps:
    """How a graph trains, and the steps that it takes; `told`: see `Probe`."""

    def __init__(self, opened, told, fed, rounding):
        tf, graph = opened._tf, opened._graph
        self._opened, self._session, self._rounding = opened, opened._session, rounding
        self._loss = opened._tensor(told["loss"])
        self._drawn = [opened._tensor(name) for name in told["drawn"]]
        refuse_unfed(self._loss, fed + self._drawn)
        self._rates = [opened._tensor(name) for name in told["rates"]]
        self._watched = [opened._tensor(name) for name in told["watched"]]
        self._ops = [graph.get_operation_by_name(name) for name in told["ops"]]
        self._gradients = {
            node: [opened._tensor(name) for name in names if name is not None]
            for node, names in sorted(told["gradients"].items())
        }
        self._begun: Any = None
        self._session.run([graph.get_operation_by_name(name) for name in told["begun"]])
        with graph.as_default():
            self._values = {
                name: [_read(tf, graph.get_operation_by_name(node)) for node in nodes]
                for name, nodes in sorted(told["variables"].items())
            }
            self._tables = {
                name: [[opened._tensor(one) for one in shard] for shard in shards]
                for name, shards in sorted(told["tables"].items())
            }
            moved = [graph.get_operation_by_name(name) for name in told["moved"]]
            self._moved = [_read(tf, op) for op in moved]
            self._given = [tf.placeholder(tensor.dtype.base_dtype) for tensor in self._moved]
            self._put = [_assign(tf, op, value) for op, value in zip(moved, self._given)]

    def begin(self, rows, arrays, twice):
        """The values that a step computes before it changes anything: the arrays of its answer.

        loss                 of the batch
        again                computed again, if requested: a different one shows randomness
        watched/NAME         the watched tensors, then
        drawn/NAME           the random tensors
        gradient/NODE/0      the gradient of a variable's node, or its values, and /1 its indices
        """
        feed = self._opened._feed(rows, arrays)
        drawn, rates = self._unmoved([self._drawn, self._rates], feed)
        more = dict(zip(self._drawn, drawn))
        feed.update(more)
        loss, gradients = self._compute(feed)
        found = [("loss", loss)]
        if twice:
            found.append(("again", self._compute(feed)[0]))
            values = self._unmoved(self._watched, feed)
            found += [("watched/" + one.name, value) for one, value in zip(self._watched, values)]
        # The rates are fed, since the step may move the global step before it computes them.
        self._begun = rows, arrays, more, {**feed, **dict(zip(self._rates, rates))}
        found += [("drawn/" + one.name, value) for one, value in zip(self._drawn, drawn)]
        return found + _as_arrays(gradients)

    def rounding(self):
        """The rounding of the loss and the gradients of the step that was begun:

        loss, gradient/NODE   of a sparse gradient by its rows, ascending, repeated ones summed
        """
        rows, arrays, more, _ = self._begun

        def run(feed, order):
            loss, gradients = self._compute(feed)
            return [loss] + [_summed(*values) for values in gradients.values()]

        found = self._rounding.largest(rows, arrays, run, more, in_order=bool(more))
        names = ["loss"] + ["gradient/" + node for node in self._gradients]
        return list(zip(names, found))

    def finish(self):
        """Takes the step; returns every variable after it, after/NAME, for a table its rows by
        ascending id and ids/NAME, and, as in `begin`, the exact gradients that were applied."""
        _, gradients = self._session.run([self._ops, self._gradients], self._begun[-1])
        after = self._session.run(self._values)
        found = [("after/" + name, _joined(parts)) for name, parts in after.items()]
        for name, shards in self._session.run(self._tables).items():
            ids, rows = (np.concatenate(parts) for parts in zip(*shards))
            order = np.argsort(ids)
            found += [("after/" + name, rows[order]), ("ids/" + name, ids[order])]
        return found + _as_arrays(gradients)

    def _compute(self, feed):
        """(loss, {node: its gradient}), in a run of its own, since in the run of the step variables
        may be read before or after their assignment."""
        loss, gradients = self._unmoved([self._loss, self._gradients], feed)
        return np.sum(loss), gradients  # tf.gradients takes those of the sum

    def _unmoved(self, fetches, feed):
        """A run after which the variables that it moves, such as BatchNorm's statistics, are
        restored."""
        before = self._session.run(self._moved)
        found = self._session.run(fetches, feed)
        self._session.run(self._put, dict(zip(self._given, before)))
        return found


def _as_arrays(gradients):
    return [
        ("gradient/{}/{}".format(node, place), one)
        for node, values in gradients.items()
        for place, one in enumerate(values)
    ]


def _summed(values, indices=None):
    """A gradient, its repeated rows summed."""
    if indices is None:
        return values
    rows, places = np.unique(indices, return_inverse=True)
    total = np.zeros((len(rows),) + values.shape[1:])
    np.add.at(total, places, values)
    return total


def _read(tf, op):
    if op.type != "VarHandleOp":
        return tf.identity(op.outputs[0])
    return tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=op.get_attr("dtype"))


def _assign(tf, op, value):
    if op.type != "VarHandleOp":
        return tf.assign(op.outputs[0], value).op
    return tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=value)


def _joined(parts):
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
