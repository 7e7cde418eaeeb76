"""The messages between `semisync score` or `verify` and their TensorFlow end, over two pipes.

They alternate, one message each:

    1. parent: the model, see `scorer.Scorer`           child: {"inputs": [...], "batch": rows,
       or a graph, see `probe.Probe`                           "versions": {...}}
    2. parent: {"rows": n} and the arrays of a batch    child: the array "scores"
       as often as there are batches
    3. parent: closes stdin                             child: ends

`semisync verify` asks a graph as often as it likes, instead of 2, with the arrays of a batch:

       parent: {"rows": n, "fetch": [tensor, ...],      child: the array "k" of the k-th tensor,
                "rounding": bool}                              or its rounding
       parent: {"rows": n, "begin": "once" or "twice"}  child: the arrays of a training step, see
       parent: {"step": "rounding"}                            `probe.Steps`: begin, rounding,
       parent: {"step": "finish"}                              finish
       parent: {"onnx": outputs, "inputs": names}       child: {"why": sentence}, or the array
                                                               "model"

At any turn the child may answer {"error": sentence} instead, and end. A message is

    8 bytes   little-endian, the length of the head
    head      JSON, an object; its "arrays" lists [name, dtype, shape] of the arrays
    arrays    row-major bytes, little-endian; of dtype "bytes" (text) an int64 length for each
              value, then the values one after the other

In the arrays of a batch, "i" holds the values of the input i of answer 1, rows first. For a sparse
input "i" holds the values of all rows one after the other, and "i/lengths" (int64) the number of
each row's.
"""

import itertools
import json
import re
import struct

import numpy as np

_LONGEST_HEAD = 1 << 26  # bytes; a longer one is not a message of this protocol
_LISTED = 20  # names in a sentence


class Refused(Exception):
    """The model does not match its description; the message is for the user."""


def listing(names):
    """The names in a sentence, only the first ones if there are many; t:2 comes before t:10."""
    names = sorted(names, key=_by_numbers)
    more = " and {} more".format(len(names) - _LISTED) if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more or "none"


def _by_numbers(name):
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)]


def sizes(shape):
    """A shape in a sentence; None stands for any size."""
    return "[{}]".format(", ".join("?" if size is None else str(size) for size in shape))


def send(stream, head, arrays=()):
    """Writes one message; `arrays` are pairs of name and array."""
    listed, parts = [], []
    for name, array in arrays:
        array = np.asarray(array)
        if array.dtype == object:
            values = array.reshape(-1).tolist()
            listed.append([name, "bytes", array.shape])
            parts += [np.array([len(value) for value in values], "<i8").tobytes(), b"".join(values)]
        else:
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            listed.append([name, array.dtype.str, array.shape])
            parts.append(array.tobytes())
    text = json.dumps(dict(head, arrays=listed)).encode("utf-8")
    for part in [struct.pack("<Q", len(text)), text] + parts:
        stream.write(part)
    stream.flush()


def receive(stream):
    """(head, {name: array}) of the next message; None if the stream ends before one.

    Raises:
        EOFError: it is truncated.
        ValueError: it is not a message.
    """
    start = stream.read(8)
    if not start:
        return None
    # Fewer than 8 bytes become a length beyond every limit, which is refused below.
    (length,) = struct.unpack("<Q", start.ljust(8, b"\xff"))
    if length > _LONGEST_HEAD:
        raise ValueError("what came is not a message")
    head = json.loads(_exactly(stream, length).decode("utf-8"))
    return head, {name: _array(stream, *more) for name, *more in head.pop("arrays")}


def _array(stream, dtype, shape):
    count = int(np.prod(shape, dtype=np.int64))
    if dtype != "bytes":
        kind = np.dtype(dtype)
        return np.frombuffer(_exactly(stream, count * kind.itemsize), kind).reshape(shape)
    lengths = np.frombuffer(_exactly(stream, 8 * count), "<i8").tolist()
    joined = _exactly(stream, sum(lengths))
    values = np.empty(count, object)
    for i, end in enumerate(itertools.accumulate(lengths)):
        values[i] = joined[end - lengths[i] : end]
    return values.reshape(shape)


def _exactly(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the message is cut short")
    return data
