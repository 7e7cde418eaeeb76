"""A job of `write_drawn`, and what torch makes of it."""

import pathlib

import numpy as np

from migrate.model.training.steps import BegunStep
from tests.model.features import features_of

STEPS = 3


class Job:
    """One folder of `write_drawn`.

    Attributes:
        prefix: of its checkpoint.
        said: what was chosen, in words.
        scores: by TensorFlow, of `rows`.
    """

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.prefix, self.said = str(folder / "model.ckpt"), (folder / "said.txt").read_text()
        with np.load(folder / "job.npz", allow_pickle=True) as file:
            self._kept = dict(file)
        self.scores = self._kept["scores"]

    @property
    def rows(self):
        """What is scored."""
        return features_of(self._under("rows/"))

    @property
    def steps(self):
        """Those that followed the checkpoint."""
        return [self._step(k) for k in range(STEPS)]

    @property
    def values(self):
        """{name: value} after the last step."""
        return self._under(f"{STEPS - 1}/after/")

    def _step(self, k):
        rows = self._under(f"{k}/indices/")
        gradients = {
            node: (value, rows.get(node)) for node, value in self._under(f"{k}/gradient/").items()
        }
        none = {
            node: np.full((len(value if ids is None else np.unique(ids)), *value.shape[1:]), 1e-12)
            for node, (value, ids) in gradients.items()
        }
        return BegunStep(
            features_of(self._under(f"{k}/fed/")),
            float(self._kept[f"{k}/loss"]),
            gradients,
            lambda: (0.0, none),
            lambda: (self._under(f"{k}/after/"), gradients),
        )

    def _under(self, prefix):
        return {
            key[len(prefix) :]: value for key, value in self._kept.items() if key.startswith(prefix)
        }
