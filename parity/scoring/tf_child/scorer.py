"""A TensorFlow model, opened in a session of its own, that scores batches."""

import collections
import difflib
import importlib
import platform

import numpy as np

_LISTED = 20  # names in an error


class Refused(Exception):
    """The model is not what was said of it; the message is for the user."""


class Input(collections.namedtuple("Input", "column name tensors")):
    """A column of the data and what it is fed to.

    Attributes:
      column: its name in the data.
      name: what the model calls it.
      tensors: one, or a sparse tensor's indices, values and shape; none for a feature of
        serialized Examples.
    """

    def describe(self):
        """What the parent needs to read the column: dtype is None where any will do."""
        dtype = None
        if self.tensors:
            kind = self.tensors[len(self.tensors) // 2].dtype.base_dtype
            sent_as = {"string": "bytes", "bfloat16": "float32"}  # which the feed narrows
            dtype = sent_as.get(kind.name, kind.name)
        sparse = len(self.tensors) != 1
        return {"column": self.column, "name": self.name, "dtype": dtype, "sparse": sparse}

    def feed(self, values, lengths):
        """{tensor: array} for one batch."""
        if len(self.tensors) == 1:
            return {self.tensors[0]: self._fitting(values)}
        starts = np.cumsum(lengths) - lengths
        rows = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(values)) - np.repeat(starts, lengths)
        shape = np.array([len(lengths), lengths.max()], np.int64)
        return dict(zip(self.tensors, [np.stack([rows, places], 1), values, shape]))

    def _fitting(self, values):
        """`values` [rows] as [rows, 1] where the tensor has one dimension more."""
        shape = self.tensors[0].shape
        if shape.ndims == values.ndim + 1:
            values = values.reshape(values.shape + (1,))
        if not shape.is_compatible_with(values.shape):
            raise Refused(
                "the input {!r} takes the shape {}, but column {!r} gives {}".format(
                    self.name, _sizes(shape.as_list()), self.column, _sizes(values.shape)
                )
            )
        return values


class Scorer:
    """The model that `spec` describes, a dict with

    kind        "saved_model" or "checkpoint"
    path        the SavedModel's directory, or the checkpoint's prefix
    tags        of the SavedModel, a list; and its signature
    meta        path of the checkpoint's MetaGraph
    modules     to import first, for the ops that they register
    inputs      list of [column, name, sparse]. A name is a tensor's, or the signature's for it; a
                sparse one that of a tf.sparse_placeholder, or its indices, values and shape, with
                commas. An empty list stands for every input of the signature, by its own name
    examples    name of the input that takes the inputs as serialized tf.train.Examples, or None
    output      name of the output; None for the only one of the signature
    feeds       {tensor: value}, the same for every batch

    Raises: Refused, and whatever TensorFlow does.
    """

    def __init__(self, spec):
        import tensorflow.compat.v1 as tf

        self._tf = tf
        for module in spec["modules"]:
            importlib.import_module(module)
        self._graph = tf.Graph()
        self._session = tf.Session(graph=self._graph)
        inputs = outputs = None  # of the signature, by name
        with self._graph.as_default():
            if spec["kind"] == "saved_model":
                signature = self._load_saved_model(spec)
                inputs, outputs = signature.inputs, signature.outputs
            else:
                self._restore_checkpoint(spec)
        self._output = self._named(spec["output"] or _only(outputs), outputs, "output")
        if not self._output.dtype.is_floating:
            raise Refused(
                "the output {!r} is {}; scores are floating-point numbers".format(
                    self._output.name, self._output.dtype.name
                )
            )
        self._examples = None
        if spec["examples"]:
            self._examples = self._named(spec["examples"], inputs, "input")
        self._constants = {}
        for name, value in spec["feeds"].items():
            tensor = self._tensor(name)
            self._constants[tensor] = np.array(value, tensor.dtype.as_numpy_dtype)
        wanted = spec["inputs"] or [(name, name, False) for name in sorted(inputs or ())]
        self.inputs = [self._input(column, name, sparse, inputs) for column, name, sparse in wanted]

    def score(self, rows, arrays):
        """The output for a batch of `messages`; float32 or float64, of the model's own shape."""
        values = [arrays[str(i)] for i in range(len(self.inputs))]
        lengths = [arrays.get("{}/lengths".format(i)) for i in range(len(self.inputs))]
        feed = dict(self._constants)
        if self._examples is not None:
            feed[self._examples] = self._serialized(rows, values, lengths)
        else:
            for one, its_values, its_lengths in zip(self.inputs, values, lengths):
                feed.update(one.feed(its_values, its_lengths))
        scores = self._session.run(self._output, feed)
        return scores if scores.dtype == np.float64 else scores.astype(np.float32)

    def versions(self):
        """Of what computes."""
        return {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "tensorflow": self._tf.__version__,
        }

    def _load_saved_model(self, spec):
        meta = self._tf.saved_model.loader.load(self._session, spec["tags"], spec["path"])
        if spec["signature"] not in meta.signature_def:
            raise Refused(
                "there is no signature {!r}; there are: {}".format(
                    spec["signature"], _listing(meta.signature_def)
                )
            )
        return meta.signature_def[spec["signature"]]

    def _restore_checkpoint(self, spec):
        tf = self._tf
        saver = tf.train.import_meta_graph(spec["meta"], clear_devices=True) or tf.train.Saver()
        self._session.run([tf.local_variables_initializer(), tf.tables_initializer()])
        saver.restore(self._session, spec["path"])

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
                raise Refused("{!r} is no sparse input of the signature".format(name))
        if not sparse:
            return Input(column, name, [self._named(name, signature, "input")])
        names = name.split(",")
        if len(names) == 1:
            names = [name + part for part in ("/indices", "/values", "/shape")]
        if len(names) != 3:
            raise Refused("{!r} does not name indices, values and shape".format(name))
        return Input(column, name, [self._tensor(part) for part in names])

    def _named(self, name, signature, role):
        """The tensor that `signature` (None: the graph itself) calls `name`."""
        if signature is None:
            return self._tensor(name)
        if name not in signature:
            raise Refused(
                "the signature has no {} {!r}; it has: {}".format(role, name, _listing(signature))
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
                    full, hint, _listing(fed)
                )
            ) from error

    def _serialized(self, rows, values, lengths):
        """An Example of each row, bytes [rows]; a feature without values is left out of it."""
        lists = {"i": "int64_list", "u": "int64_list", "b": "int64_list", "f": "float_list"}
        columns = [
            (one.name, lists.get(its.dtype.kind, "bytes_list"), its.tolist(), np.cumsum(many))
            for one, its, many in zip(self.inputs, values, lengths)
        ]
        examples = np.empty(rows, object)
        for row in range(rows):
            example = self._tf.train.Example()
            for name, kind, its, ends in columns:
                start, end = ends[row - 1] if row else 0, ends[row]
                if start < end:
                    feature = example.features.feature[name]
                    getattr(feature, kind).value.extend(its[start:end])
            examples[row] = example.SerializeToString()
        return examples


def _only(outputs):
    if len(outputs) != 1:
        raise Refused("name one of the outputs with --output: {}".format(_listing(outputs)))
    return next(iter(outputs))


def _listing(names):
    names = sorted(names)
    more = ["and {} more".format(len(names) - _LISTED)] if len(names) > _LISTED else []
    return ", ".join(names[:_LISTED] + more) or "none"


def _sizes(sizes):
    return "[{}]".format(", ".join("?" if size is None else str(size) for size in sizes))
