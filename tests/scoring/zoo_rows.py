"""The rows that a model of the zoo was recorded with, as a file, and what scores it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from migrate.runtime.source import read_source
from semisync.cli import main


def write(model, path):
    """Writes the inputs of `outputs.npz`, a column for each feature of the log."""
    columns = {
        name: _lists(value) if isinstance(value, dict) else _column(value)
        for name, value in model.by_feature(model.inputs()).items()
    }
    pyarrow.parquet.write_table(pa.table(columns), path)


def converted(model, out):
    """The directory of `semisync convert --model`, and the options that score its logits."""
    outputs = sorted(model.said["outputs"].items())
    (logits,) = [tensor for name, tensor in outputs if name.endswith("logits")][:1]
    arguments = ["convert", model.prefix, str(out), "--model", "--output", logits]
    assert main(arguments) == 0
    taken = {wanted.tensors[0]: name for name, wanted in read_source(str(out)).INPUTS.items()}
    options = ["--converted", str(out)]
    for one in model.said["inputs"]:
        tensor = one["tensors"]["indices"] if one["sparse"] else one["tensor"]
        if tensor in taken and taken[tensor] != one["feature"]:
            options += ["--input", f"{one['feature']}={taken[tensor]}"]
    for flag in model.said["flags"]:
        if flag["tensor"] in taken:
            options += ["--feed", f"{flag['tensor']}={flag['evaluation']}"]
    return options


def tensorflow(model, python):
    """The options that score the same in TensorFlow."""
    outputs = sorted(model.said["outputs"].items())
    (logits,) = [tensor for name, tensor in outputs if name.endswith("logits")][:1]
    options = ["--checkpoint", model.prefix, "--tf-python", python, "--output", logits]
    for one in model.said["inputs"]:
        if one["sparse"]:
            tensors = ",".join(one["tensors"][part] for part in ("indices", "values", "shape"))
            options += ["--sparse", f"{one['feature']}={tensors}"]
        else:
            options += ["--input", f"{one['feature']}={one['tensor']}"]
    for flag in model.said["flags"]:
        value = str(flag["evaluation"]).lower()
        options += ["--feed", f"{flag['tensor']}={value}"]
    return options


def _column(array):
    flat = pa.array(array.reshape(-1), pa.binary() if array.dtype == object else None)
    if array.ndim == 1:
        return flat
    return pa.FixedSizeListArray.from_arrays(flat, array.shape[1])


def _lists(parts):
    many = np.bincount(parts["indices"][:, 0], minlength=parts["shape"][0])
    ends = np.concatenate([[0], np.cumsum(many)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), _column(parts["values"]))
