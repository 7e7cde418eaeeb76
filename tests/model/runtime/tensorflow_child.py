"""Computes what TensorFlow says, for a parent whose Python may not have that TensorFlow.

    python tensorflow_child.py

A request on standard input and its answer on standard output are both eight bytes of length, little
endian, and an .npz file. A request has "kind", the name of a function below, and its arguments; an
answer has "0", "1", ..., or "error" where TensorFlow refuses. Strings are three arrays: NAME.data,
NAME.offsets and NAME.shape. Runs under Python 3.7 with TensorFlow 1.15, and under later ones.
"""

import io
import os
import struct
import sys

import numpy as np


def packed(arrays):
    """The .npz file of some arrays, those of objects as strings."""
    plain = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype == object:
            flat = array.ravel().tolist()
            plain[name + ".data"] = np.frombuffer(b"".join(flat), np.uint8)
            plain[name + ".offsets"] = np.cumsum([0] + [len(one) for one in flat])
            plain[name + ".shape"] = np.array(array.shape, np.int64)
        else:
            plain[name] = array
    file = io.BytesIO()
    np.savez(file, **plain)
    return file.getvalue()


def unpacked(content):
    """The arrays of such a file, strings as arrays of bytes objects."""
    arrays = dict(np.load(io.BytesIO(content), allow_pickle=False))
    for name in [name[:-5] for name in arrays if name.endswith(".data")]:
        data = arrays.pop(name + ".data").tobytes()
        offsets = arrays.pop(name + ".offsets").tolist()
        strings = np.empty(len(offsets) - 1, object)
        strings[:] = [data[start:end] for start, end in zip(offsets, offsets[1:])]
        arrays[name] = strings.reshape(arrays.pop(name + ".shape"))
    return arrays


def send(stream, arrays):
    content = packed(arrays)
    stream.write(struct.pack("<q", len(content)) + content)
    stream.flush()


def receive(stream):
    """The next message, or None at the end."""
    length = stream.read(8)
    return unpacked(stream.read(struct.unpack("<q", length)[0])) if length else None


def main():
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever TensorFlow prints
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    kinds = Kinds(tf)
    while True:
        request = receive(sys.stdin.buffer)
        if request is None:
            return
        try:
            values = kinds.run(str(request.pop("kind")), request)
            answer = {str(number): value for number, value in enumerate(values)}
        except Exception as error:  # what ends an op may be no error of TensorFlow's
            answer = {"error": np.array(str(error))}
        send(out, answer)


class Kinds:
    """Each kind of request: a graph and a session, made at its first use."""

    def __init__(self, tf):
        self.tf = tf
        self.made = {}

    def run(self, kind, request):
        fed = {name: array for name, array in request.items() if not name.startswith("attr_")}
        attributes = {
            name[5:]: array.tolist() for name, array in request.items() if name.startswith("attr_")
        }
        types = sorted((name, array.dtype.str) for name, array in fed.items())
        key = repr((kind, types, sorted(attributes.items())))
        if key not in self.made:
            self.made[key] = self.make(kind, types, attributes)
        session, inputs, outputs = self.made[key]
        return session.run(outputs, {inputs[name]: array for name, array in fed.items()})

    def make(self, kind, types, attributes):
        with self.tf.Graph().as_default() as graph:
            inputs = {
                name: self.tf.placeholder(self.tf.as_dtype(np.dtype(dtype)))
                for name, dtype in types
            }
            outputs = list(getattr(self, kind)(**inputs, **attributes))
            session = self.tf.Session(graph=graph)
            session.run(self.tf.tables_initializer())
            return session, inputs, outputs

    def hash_fast(self, strings, buckets):
        return [self.tf.raw_ops.StringToHashBucketFast(input=strings, num_buckets=buckets)]

    def hash_old(self, strings, buckets):
        return [self.tf.raw_ops.StringToHashBucket(string_tensor=strings, num_buckets=buckets)]

    def hash_strong(self, strings, buckets, key):
        return [
            self.tf.raw_ops.StringToHashBucketStrong(input=strings, num_buckets=buckets, key=key)
        ]

    def hash_integers(self, numbers, buckets):
        return self.hash_fast(self.tf.as_string(numbers), buckets)

    def as_string(self, numbers, **how):
        return [self.tf.raw_ops.AsString(input=numbers, **how)]

    def to_number(self, strings, dtype):
        return [self.tf.string_to_number(strings, self.tf.as_dtype(dtype))]

    def bucketize(self, numbers, boundaries):
        return [self.tf.raw_ops.Bucketize(input=numbers, boundaries=boundaries)]

    def cross(self, indices, values, shape, integers, words, hashed, buckets, hash_key):
        """A SparseTensor, a matrix of integers and one of words."""
        tf = self.tf
        integers.set_shape([None, None])
        words.set_shape([None, None])
        return tf.raw_ops.SparseCross(
            indices=[indices],
            values=[values],
            shapes=[shape],
            dense_inputs=[integers, words],
            hashed_output=hashed,
            num_buckets=buckets,
            hash_key=hash_key,
            out_type=tf.int64 if hashed else tf.string,
            internal_type=tf.int64,
        )

    def vocabulary(self, words, path, buckets):
        """Ids by a file of words; unknown ones in buckets, as feature columns make them."""
        from tensorflow.python.ops import lookup_ops

        table = lookup_ops.index_table_from_file(path, num_oov_buckets=buckets)
        return [table.lookup(words)]

    def numbers_of_keys(self, keys, known, values, default):
        tf = self.tf
        known = tf.constant(known, tf.int64)
        filled = tf.lookup.KeyValueTensorInitializer(known, tf.constant(values, tf.float32))
        return [tf.lookup.StaticHashTable(filled, default).lookup(keys)]

    def split(self, strings, delimiter, skip_empty):
        return self.tf.raw_ops.StringSplit(
            input=strings, delimiter=delimiter, skip_empty=skip_empty
        )

    def split_v2(self, strings, sep, maxsplit):
        return self.tf.raw_ops.StringSplitV2(input=strings, sep=sep, maxsplit=maxsplit)

    def text(self, strings, separator):
        ops = self.tf.raw_ops
        return [
            ops.StringJoin(inputs=[strings, "-", strings], separator=separator),
            ops.StringStrip(input=strings),
            ops.StringLower(input=strings),
            ops.StringUpper(input=strings),
            ops.StringLength(input=strings),
            ops.StringLength(input=strings, unit="UTF8_CHAR"),
        ]

    def substr(self, strings, begin, size):
        return [self.tf.raw_ops.Substr(input=strings, pos=begin, len=size)]

    def regex(self, strings, pattern, rewrite, everywhere):
        ops = self.tf.raw_ops
        replace = {"pattern": pattern, "rewrite": rewrite, "replace_global": everywhere}
        return [
            ops.RegexFullMatch(input=strings, pattern=pattern),
            ops.RegexReplace(input=strings, **replace),
        ]

    def decode_raw(self, strings, dtype):
        return [self.tf.decode_raw(strings, self.tf.as_dtype(dtype))]

    def fields(self, records, columns, **how):
        """CSV of strings, of which the second column must have a value."""
        given = [["a"] if column != 1 else [] for column in range(columns)]
        defaults = [self.tf.constant(default, self.tf.string) for default in given]
        return self.tf.raw_ops.DecodeCSV(records=records, record_defaults=defaults, **how)

    def table_of_file(self, keys, path, key_index, value_index, size, text_keys, text_values):
        """A lookup with the default "none" or -5, and the table's size."""
        tf = self.tf
        types = [tf.string if text else tf.int64 for text in (text_keys, text_values)]
        from_file = tf.lookup.TextFileInitializer(
            path, types[0], key_index, types[1], value_index, vocab_size=size or None
        )
        table = tf.lookup.StaticHashTable(from_file, "none" if text_values else -5)
        return [table.lookup(keys), table.size()]

    def csv(self, records):
        tf = self.tf
        defaults = [tf.constant([default]) for default in (-1, -1.5, "none")]
        return tf.raw_ops.DecodeCSV(records=records, record_defaults=defaults, na_value="NA")

    def examples(self, serialized):
        tf = self.tf
        types = {"s": tf.string, "f": tf.float32, "i": tf.int64}
        shapes = {"s": [2], "f": [1, 3], "i": []}
        defaults = {"s": ["x", "y"], "f": [[0.5, 1.5, -1.0]], "i": -7}
        asked = {"sparse_" + name: tf.VarLenFeature(dtype) for name, dtype in types.items()}
        for name, dtype in types.items():
            fixed = tf.FixedLenFeature(shapes[name], dtype, defaults[name])
            asked["dense_" + name] = fixed
            asked["long_" + name] = tf.FixedLenSequenceFeature([2], dtype, True)
        parsed = tf.parse_example(serialized, asked)
        values = []
        for name in sorted(asked):
            one = parsed[name]
            sparse = name.startswith("sparse")
            values.extend([one.indices, one.values, one.dense_shape] if sparse else [one])
        return values


if __name__ == "__main__":
    main()
