"""The runs of a block, each carried out once and kept as a line of JSON."""

import sys

from benchmarks.harness.kept import Kept
from benchmarks.mitigations_parts.training import Training

KEY = ("data", "optimizer", "size", "split", "mode", "rate", "strength", "seed")


class Runs:
    """Runs of one data set, optimizer and M.

    Args:
        path: the file of JSON lines, which may be there.
        name, rows: the data set.
        optimizer, size: "adam" or "adagrad"; M.

    Attributes:
        block: {"data", "optimizer", "size"}.
    """

    def __init__(self, path, name, rows, optimizer, size):
        self._kept, self._rows = Kept(path, KEY), rows
        self.block = {"data": name, "optimizer": optimizer, "size": size}

    def figures(self, mode, split, rate, strength, seed):
        """The line of a run, which is carried out unless the file has it."""
        about = dict(
            self.block, split=split, mode=mode.name, rate=rate, strength=strength, seed=seed
        )

        def carry_out():
            how = {"split": split, "method": mode.at(strength), "rate": rate, "seed": seed}
            found = Training(self._rows, **self.block, **how).run()
            shown = " ".join(str(about[name]) for name in KEY)
            auc = "diverged" if found["auc"] is None else "{:.5f}".format(found["auc"])
            print(shown + ":", auc, "%.0f s" % found["seconds"], file=sys.stderr, flush=True)
            return found

        return self._kept.line(about, carry_out)
