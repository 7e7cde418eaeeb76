"""A job whose chief saves by a Saver of its own when it ends, before the other worker does."""

import numpy as np
import pytest

from semisync.common.compat import tf
from tests.jobs.compared import alone, changed, job
from tests.jobs.run import read_checkpoint
from tests.jobs.unions import numbered

LENGTHS = 8, 12  # batches of the chief and of the other


@pytest.mark.long
@pytest.mark.one_tensorflow
def test_what_the_chief_saves_at_its_end_has_the_last_global_step(tmp_path):
    own = job("own_saver")
    after = changed(own, tmp_path, LENGTHS)
    steps = numbered(str(after.directory / "audit.jsonl"), False)
    assert [len(batches) for batches in steps] == [2] * (sum(LENGTHS) // 2)
    saved = read_checkpoint(tf.train.latest_checkpoint(str(after.model / "export")))
    expected = alone(own, tmp_path, after, steps)
    assert saved["global_step"] == len(steps)
    np.testing.assert_allclose(saved["kernel"], expected["kernel"], rtol=0, atol=1e-6)
