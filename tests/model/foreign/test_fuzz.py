"""Mutated graphs are refused or right, within a minute and 4 GB each; see fuzz.py."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.model.foreign.fuzz import same
from tests.support.require import forked_tensorflow

pytest.importorskip("tensorflow")

BATCH = 100


def run(step, folder, *numbers):
    python = forked_tensorflow(sys.executable)
    command = [python, "-m", "tests.model.foreign.fuzz", step, str(folder), *numbers]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(command, env=env, capture_output=True, text=True)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(8))
def test_a_mutated_graph_is_refused_or_right(batch, tmp_path):
    written = run("write", tmp_path, str(batch * BATCH), str(BATCH))
    assert written.returncode == 0, written.stderr[-2000:]
    converted = run("convert", tmp_path)
    assert converted.returncode == 0, converted.stdout[-100:] + converted.stderr[-3000:]
    ends = (run("score", tmp_path).returncode for _ in range(BATCH))  # a graph may end TensorFlow
    assert any(end == 0 for end in ends)
    wrong, compared = [], 0
    for path in tmp_path.glob("*.tensorflow.npz"):
        number = path.name.partition(".")[0]
        with np.load(path, allow_pickle=True) as one, np.load(
            tmp_path / f"{number}.torch.npz", allow_pickle=True
        ) as other:
            compared += 1
            wrong += [] if all(same(one[name], other[name]) for name in one) else [number]
    assert wrong == []
    assert compared > 0
