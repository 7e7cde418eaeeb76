"""The wheel without any extra: the simulator, and from Python 3.10 on two models compared."""

import pathlib
import subprocess
import sys

import numpy as np

semisync = pathlib.Path(sys.executable).with_name("semisync")
simulate = ["simulate", "--workers", "4", "--modes", "async", "--steps", "9"]
subprocess.run([str(semisync)] + simulate, check=True, stdout=subprocess.DEVNULL)
said = "simulate"
if sys.version_info >= (3, 10):
    import parity

    random = np.random.RandomState(0)
    labels = random.random_sample(20000) < 0.3
    scores = random.normal(size=20000) + labels
    found = parity.compare(labels, scores, scores + 1e-9, margin=5e-3)
    assert found.verdict is parity.Verdict.EQUIVALENT
    said += ", parity.compare"
print("{}; Python {}, numpy {}".format(said, sys.version.split()[0], np.__version__))
