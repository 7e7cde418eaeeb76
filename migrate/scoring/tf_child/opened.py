"""A TensorFlow model, opened in a session of its own, with its feeds."""

import difflib
import importlib
import os
import platform
import sys

import numpy as np

from .graph import open_model
from .inputs import SPARSE, Input, serialized
from .messages import Refused, listing


class Opened:
    """The model that `spec` describes, a dict with

    kind        "saved_model", "checkpoint" or "frozen"
    path        the SavedModel's directory, the checkpoint's prefix, or the frozen graph's file
    tags        of the SavedModel, a list; and its signature, None to name tensors instead
    meta        path of the checkpoint's MetaGraph
    nodes       of it that differ from those in the file: {name: [op, inputs]}; may be missing
    fused       of it the FusedBatchNorms that take constants: {name: [mean, variance]}; likewise
    modules     to import first, for the ops that they register
    inputs      list of [column, name, sparse]. A name is a tensor's, or the signature's for it; a
                sparse one that of a tf.sparse_placeholder, or its indices, values and shape, with
                commas
    examples    name of the input that takes the inputs as serialized tf.train.Examples, or None
    feeds       {tensor: value}, the same for every batch

    Raises:
        Refused, Exception: it is not supported, or TensorFlow raises an error.

    Attributes:
        inputs: the columns that it takes, in order.
    """

    def __init__(self, spec):
        self._tf = tf = _tensorflow()
        for module in spec["modules"]:
            importlib.import_module(module)
        _register_tfra(spec)
        self._session, signature = open_model(tf, spec)
        self._graph = self._session.graph
        self._outputs = None if signature is None else signature.outputs
        inputs = None if signature is None else signature.inputs
        self._examples = None
        if spec["examples"]:
            self._examples = self._named(spec["examples"], inputs, "input")
        self._constants = {}
        for name, value in spec["feeds"].items():
            tensor = self._tensor(name)
            self._constants[tensor] = _shaped(tensor, value)
        self._signature = inputs
        self.inputs = [
            self._input(column, name, sparse, inputs) for column, name, sparse in spec["inputs"]
        ]

    @property
    def batch(self):
        """The number of rows in every run, if the graph fixes it, or None."""
        dense = [taken.tensors[0] for taken in self.inputs if len(taken.tensors) == 1]
        return _fixed_rows(dense if self._examples is None else self._fed())

    def versions(self):
        """The versions of Python and of the packages that compute."""
        return {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "tensorflow": self._tf.__version__,
        }

    def _fed(self):
        if self._examples is not None:
            return [self._examples]
        return [tensor for taken in self.inputs for tensor in taken.tensors]

    def _feed(self, rows, arrays):
        values = [arrays[str(i)] for i in range(len(self.inputs))]
        lengths = [arrays.get("{}/lengths".format(i)) for i in range(len(self.inputs))]
        feed = dict(self._constants)
        if self._examples is not None:
            names = [taken.name for taken in self.inputs]
            feed[self._examples] = serialized(self._tf, rows, names, values, lengths)
        else:
            for taken, column, many in zip(self.inputs, values, lengths):
                feed.update(taken.feed(column, many))
        return feed

    def _input(self, column, name, sparse, signature):
        if self._examples is not None:
            return Input(column, name, [])
        if signature is not None:
            if name in signature and signature[name].WhichOneof("encoding") == "coo_sparse":
                coo = signature[name].coo_sparse
                names = [coo.indices_tensor_name, coo.values_tensor_name]
                names.append(coo.dense_shape_tensor_name)
                return Input(column, name, [self._tensor(part) for part in names])
            if sparse:
                raise Refused("{!r} is not a sparse input of the signature".format(name))
        if not sparse:
            return Input(column, name, [self._named(name, signature, "input")])
        names = name.split(",")
        if len(names) == 1:
            names = [name + part for part in SPARSE]
        if len(names) != 3:
            raise Refused("{!r} does not name indices, values and shape".format(name))
        return Input(column, name, [self._tensor(part) for part in names])

    def _named(self, name, signature, role):
        """The tensor with the name `name` in `signature` (None: in the graph itself)."""
        if signature is None:
            return self._tensor(name)
        if name not in signature:
            raise Refused(
                "the signature has no {} {!r}; it has: {}".format(role, name, listing(signature))
            )
        encoding = signature[name].WhichOneof("encoding")
        if encoding != "name":
            raise Refused("the {} {!r} is {}, not one tensor".format(role, name, encoding))
        return self._tensor(signature[name].name)

    def _tensor(self, name):
        full = name if ":" in name else name + ":0"
        try:
            return self._graph.get_tensor_by_name(full)
        except (KeyError, ValueError) as error:
            operations = self._graph.get_operations()
            near = difflib.get_close_matches(full.split(":")[0], [op.name for op in operations])
            hint = ", did you mean {}?".format(" or ".join(near)) if near else ""
            fed = [op.name for op in operations if op.type == "Placeholder"]
            raise Refused(
                "the graph has no tensor {!r}{}; its placeholders: {}".format(
                    full, hint, listing(fed)
                )
            ) from error


def _shaped(tensor, value):
    """A constant for `tensor`, reshaped if it has the right number of values."""
    value = np.array(value, tensor.dtype.as_numpy_dtype)
    if tensor.shape.is_fully_defined() and tensor.shape.num_elements() == value.size:
        return value.reshape(tensor.shape.as_list())
    return value


def _register_tfra(spec):
    """Imports TFRA where the graph has ops of its hash tables.

    Raises:
        Refused: this interpreter lacks it.
    """
    meta = spec["meta"] if spec["kind"] == "checkpoint" else spec["path"]
    if spec["kind"] == "saved_model":
        meta = os.path.join(meta, "saved_model.pb")
    with open(meta, "rb") as file:
        graph = file.read()
        if b"-shard_upsert_restore" in graph:
            raise Refused(
                "TFRA's FileSystemSaver has the hash tables, in files that TensorFlow's own Saver "
                "does not restore; values can be verified without TensorFlow"
            )
        # The names of its ops begin so.
        if b"TFRA>" not in graph:
            return
    try:
        importlib.import_module("tensorflow_recommenders_addons")
    except ImportError as error:
        raise Refused(
            "the graph has hash tables of TFRA, and {} lacks tensorflow_recommenders_addons ({}); "
            "--tf-python names an interpreter that has it".format(sys.executable, error)
        ) from error


def _tensorflow():
    try:
        import tensorflow.compat.v1 as tf
    except ImportError as error:
        raise Refused(
            "{} has no TensorFlow ({}); --tf-python names an interpreter that has it".format(
                sys.executable, error
            )
        ) from error
    return tf


def _fixed_rows(tensors):
    """The size of the first dimension, if one of the tensors fixes it, or None."""
    ranked = [tensor.shape for tensor in tensors if tensor.shape.ndims]
    known = [shape.as_list()[0] for shape in ranked]
    return next((rows for rows in known if rows is not None), None)
