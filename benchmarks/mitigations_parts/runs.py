"""The runs of a block, each carried out once and kept as a line of JSON."""

import json
import os
import sys

from benchmarks.mitigations_parts.training import Training

KEY = ("data", "optimizer", "size", "split", "mode", "rate", "strength", "seed")


class Runs:
    """Runs of one data set, optimizer and M.

    Args:
        path: the file of JSON lines, which may be there.
        name, rows: the data set.
        optimizer, size: "adam" or "adagrad"; M.
    """

    def __init__(self, path, name, rows, optimizer, size):
        self._path, self._rows = path, rows
        self._block = {"data": name, "optimizer": optimizer, "size": size}
        self._done = {}
        if os.path.exists(path):
            with open(path) as file:
                self._done = {key(line): line for line in map(json.loads, file)}

    @property
    def block(self):
        """{"data", "optimizer", "size"}."""
        return self._block

    def figures(self, mode, split, rate, strength, seed):
        """The line of a run, which is carried out unless the file has it."""
        line = dict(
            self._block, split=split, mode=mode.name, rate=rate, strength=strength, seed=seed
        )
        if key(line) not in self._done:
            optimizer, size = self._block["optimizer"], self._block["size"]
            training = Training(
                self._rows,
                self._block["data"],
                split,
                optimizer,
                size,
                mode.at(strength),
                rate,
                seed,
            )
            line.update(training.run())
            with open(self._path, "a") as file:
                file.write(json.dumps(line) + "\n")
            self._done[key(line)] = line
            shown = " ".join(str(value) for value in key(line))
            auc = "diverged" if line["auc"] is None else "{:.5f}".format(line["auc"])
            print(shown + ":", auc, "%.0f s" % line["seconds"], file=sys.stderr, flush=True)
        return self._done[key(line)]


def key(line):
    """What tells a run from others."""
    return tuple(line[name] for name in KEY)
