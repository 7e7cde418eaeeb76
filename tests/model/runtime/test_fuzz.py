"""The kinds of fuzz.py, with fewer rows."""

import numpy as np
import pytest
import torch

from tests.model.runtime import fuzz


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_random_rows_give_what_tensorflow_gives(peer, kind):
    assert fuzz.run(peer, kind, 6000, seed=1, chunk=3000) == 0


def test_the_comparison_sees_one_wrong_bit():
    one = torch.tensor([0.0, 1.0, float("nan")])
    assert fuzz.differing([one], [one.numpy()]) == 0
    assert fuzz.differing([one], [np.array([-0.0, 1.0, np.nan], np.float32)]) == 1
    assert fuzz.differing([one], [one.double().numpy()]) == 3
