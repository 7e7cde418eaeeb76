"""One stage in the life of models' graphs, for a TensorFlow that the test does not run on.

    python -m tests.rewrite.stage export|rewrite|train DIRECTORY MODEL...

For each MODEL, a class of `tests.rewrite.models`, in DIRECTORY:

    export   writes MODEL.meta, and MODEL.json with what is fetched and fed
    rewrite  makes MODEL.semi.meta of it, by the command
    train    imports that, trains it, writes MODEL.before.npz and MODEL.after.npz
"""

import json
import pathlib
import sys

import numpy as np

from semisync import cli
from semisync.common.compat import tf
from tests.rewrite import models, training

M, STEPS = 2, 3


def steps(name):
    """The batches of a model's global steps."""
    model = getattr(models, name)()
    return [[model.batch(0, step * M + i) for i in range(M)] for step in range(STEPS)]


def export(directory, name):
    exported = training.export(getattr(models, name))
    (directory / (name + ".meta")).write_bytes(exported.meta.SerializeToString())
    names = {"train": exported.train, "feeds": exported.feeds}
    (directory / (name + ".json")).write_text(json.dumps(names))


def rewrite(directory, name):
    paths = [str(directory / (name + suffix)) for suffix in (".meta", ".semi.meta")]
    assert cli.main(["rewrite"] + paths + ["--batches-per-step", str(M), "--paced"]) == 0


def train(directory, name):
    meta = tf.MetaGraphDef.FromString((directory / (name + ".semi.meta")).read_bytes())
    names = json.loads((directory / (name + ".json")).read_text())
    before, after = training.train(training.Exported(meta, **names), steps(name))
    np.savez(str(directory / (name + ".before.npz")), **before)
    np.savez(str(directory / (name + ".after.npz")), **after)


def main():
    stage = {"export": export, "rewrite": rewrite, "train": train}[sys.argv[1]]
    for name in sys.argv[3:]:
        stage(pathlib.Path(sys.argv[2]), name)


if __name__ == "__main__":
    main()
