"""Reading what `write` wrote of a model; needs no TensorFlow."""

import json
import pathlib
from typing import Dict, List

import numpy as np


class Written:
    """One model of the zoo on disk.

    Attributes:
        folder: its folder.
        said: model.json; see `recording.describe`.
        prefix, meta: paths of the checkpoint and of its MetaGraph, as strings.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.said = json.loads((self.folder / "model.json").read_text())
        self.prefix = str(self.folder / self.said["checkpoint"])
        self.meta = str(self.folder / self.said["meta_graph"])

    def inputs(self):
        """{feed point: array} of the rows that outputs() are of."""
        return _arrays(self.folder / "inputs.npz")

    def outputs(self):
        """{output: array}, as TensorFlow evaluates them."""
        return _arrays(self.folder / "outputs.npz")

    def steps(self):
        """[({feed point or drawn tensor: array}, loss before the update, {variable: array after})]

        The variables are named as in the checkpoint, slots among them."""
        kept = _arrays(self.folder / "steps.npz")
        losses = kept.pop("loss")
        fed: List[Dict[str, np.ndarray]] = [{} for _ in losses]
        for key, value in kept.items():
            step, point = key.split("/", 1)
            fed[int(step)][point] = value
        return [(fed[step], losses[step], self.state(step + 1)) for step in range(len(losses))]

    def state(self, step):
        """{variable or slot: array} after `step` steps from the checkpoint; 0: the checkpoint."""
        return _arrays(self.folder / "steps" / f"{step}.npz")

    def by_feature(self, points):
        """`points` by the log's features: arrays, or {"indices", "values", "shape": array}."""
        found = {}
        for one in self.said["inputs"] + self.said["labels"]:
            point = one["point"]
            if one["sparse"] and f"{point}/values" in points:
                parts = ("indices", "values", "shape")
                found[one["feature"]] = {part: points[f"{point}/{part}"] for part in parts}
            elif point in points:
                found[one["feature"]] = points[point]
        return found


def models(folder):
    """[`Written`] of a folder of models, by name."""
    return [Written(path.parent) for path in sorted(pathlib.Path(folder).glob("*/model.json"))]


def _arrays(path):
    with np.load(path, allow_pickle=True) as file:
        return dict(file)
