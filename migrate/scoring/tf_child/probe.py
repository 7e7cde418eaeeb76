"""A TensorFlow graph whose tensors are read, and which takes its training steps."""

from typing import Any

import numpy as np

from .exporting import export
from .graph import refuse_unfed
from .messages import Refused
from .opened import Opened


class Probe(Opened):
    """The graph that `spec` describes, see `Opened`, with

    fetches     names of tensors that will be asked for
    steps       None, or how it trains, a dict with
      loss        name of the loss
      ops         nodes that make a step
      drawn       tensors that the graph draws at random; a step draws them once, and feeds them
      variables   {name: nodes}: those to tell of, each with the nodes of its parts, in order
      moved       nodes of the variables that computing the loss changes

    Raises: Refused, and whatever TensorFlow does.
    """

    def __init__(self, spec):
        super().__init__(spec)
        fed = self._fed() + list(self._constants)
        for name in spec["fetches"]:
            refuse_unfed(self._tensor(name), fed)
        self._steps: Any = None
        if spec["steps"] is not None:
            self._steps = Steps(self, spec["steps"], fed)

    def answer(self, head, arrays):
        """(head, arrays) of the answer to a question of `messages`."""
        if "onnx" in head:
            inputs = [self._tensor(name) for name in head["inputs"]]
            model, why = export(self._tf, self._session, self._constants, inputs, head["onnx"])
            return {"why": why}, [] if model is None else [("model", model)]
        feed, _ = self._feed(head["rows"], arrays)
        if "fetch" in head:
            tensors = [self._tensor(name) for name in head["fetch"]]
            values = self._session.run(tensors, feed)
            return {}, [(str(i), value) for i, value in enumerate(values)]
        return {}, self._steps.take(feed, head["again"])


class Steps:
    """How a graph trains, and the steps that it takes; `told`: see `Probe`."""

    def __init__(self, opened, told, fed):
        tf, graph = opened._tf, opened._graph
        self._session = opened._session
        self._loss = opened._tensor(told["loss"])
        self._drawn = [opened._tensor(name) for name in told["drawn"]]
        refuse_unfed(self._loss, fed + self._drawn)
        self._ops = [graph.get_operation_by_name(name) for name in told["ops"]]
        with graph.as_default():
            self._values = {
                name: [_read(tf, graph.get_operation_by_name(node)) for node in nodes]
                for name, nodes in sorted(told["variables"].items())
            }
            moved = [graph.get_operation_by_name(name) for name in told["moved"]]
            self._moved = [_read(tf, op) for op in moved]
            self._given = [tf.placeholder(tensor.dtype.base_dtype) for tensor in self._moved]
            self._put = [_assign(tf, op, value) for op, value in zip(moved, self._given)]

    def take(self, feed, again):
        """One step: the arrays of its answer.

        loss        before the update
        again       the loss once more, if it is asked for: another one shows that chance has a part
        drawn/NAME  what was drawn
        after/NAME  every variable after the update
        """
        drawn = self._session.run(self._drawn, feed)
        feed.update(zip(self._drawn, drawn))
        found = [("loss", self._compute_loss(feed))]
        if again:
            found.append(("again", self._compute_loss(feed)))
        self._session.run(self._ops, feed)
        found += [("drawn/" + one.name, value) for one, value in zip(self._drawn, drawn)]
        after = self._session.run(self._values)
        return found + [("after/" + name, _joined(parts)) for name, parts in after.items()]

    def _compute_loss(self, feed):
        """In a run of its own, as what a step assigns may be read before or after it; what that run
        moves, such as BatchNorm's statistics, is put back."""
        before = self._session.run(self._moved)
        loss = self._session.run(self._loss, feed)
        if loss.shape:
            raise Refused("the loss {!r} is no scalar".format(self._loss.name))
        self._session.run(self._put, dict(zip(self._given, before)))
        return loss


def _read(tf, op):
    """The value of a variable's op, of either kind."""
    if op.type != "VarHandleOp":
        return tf.identity(op.outputs[0])
    return tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=op.get_attr("dtype"))


def _assign(tf, op, value):
    if op.type != "VarHandleOp":
        return tf.assign(op.outputs[0], value).op
    return tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=value)


def _joined(parts):
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
