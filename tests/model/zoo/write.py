"""Builds and trains models of the zoo and writes what `recording` keeps of them.

    python -m tests.model.zoo.write NAME DIRECTORY [--steps N]

NAME is a key of `registry.MODELS` or "all" (in TensorFlow 2.x, those of `registry.OF_2`); each is
written to DIRECTORY/NAME. Runs in TensorFlow 1.15 and 2.x.
"""

import argparse
import json
import os
import shutil
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # TensorFlow 2.x has tf.layers in Keras 2 only

import numpy as np
import tensorflow

from tests.model.zoo import exported, recording
from tests.model.zoo.graphs import Graphs
from tests.model.zoo.registry import MODELS, OF_2, SOME

if tensorflow.__version__ >= "2":
    tensorflow.compat.v1.disable_v2_behavior()  # as jobs do that were written for 1.x

TRAINED = 24  # steps before the checkpoint
RECORDED = 5  # steps after it


def names(some=False):
    """Those that are written by this TensorFlow: 1.15 builds every one, or SOME."""
    if tensorflow.__version__ >= "2":
        return OF_2
    return SOME if some else list(MODELS)


def write(chosen, directory, steps=RECORDED):
    """Writes the chosen models to folders of their names in `directory`."""
    for name in chosen:
        started = time.process_time()
        folder = os.path.join(os.path.abspath(directory), name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        np.random.seed(0)
        entry = MODELS[name]
        graphs = Graphs(entry)
        prefix = entry.train(graphs, folder, TRAINED)
        said = recording.describe(graphs, prefix, name, entry.modes)
        recording.record_outputs(entry, graphs, prefix, folder)
        recording.record_steps(entry, graphs, prefix, folder, steps)
        said["exports"] = exported.export(entry, graphs, prefix, folder)
        with open(os.path.join(folder, "model.json"), "w") as file:
            json.dump(said, file, indent=1)
        print("{}: {:.1f} s".format(name, time.process_time() - started))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("directory")
    parser.add_argument("--steps", type=int, default=RECORDED)
    args = parser.parse_args(arguments)
    write(names() if args.name == "all" else [args.name], args.directory, args.steps)


if __name__ == "__main__":
    main(sys.argv[1:])
