"""A job that normalises and averages behind its train op does so once per global step, exactly.

The reference is the job as it was, in one process, on the same global batches. It has resource
variables: of reference variables on another machine its normalisation may take the values of before
the step, and undo it.
"""

import numpy as np
import pytest

from tests.jobs import data
from tests.jobs.compared import WORKERS, alone, changed, job
from tests.jobs.unions import numbered


@pytest.mark.long
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.one_tensorflow
def test_the_changed_job_trains_as_one_process_with_the_global_batch(resource, tmp_path):
    transe = job("transe", "--resource=%s" % resource)
    after = changed(transe, tmp_path, [data.BATCHES] * WORKERS)
    steps = numbered(str(after.directory / "audit.jsonl"), False)
    assert [len(batches) for batches in steps] == [WORKERS] * data.BATCHES
    end = after.variables()
    expected = alone(job("transe", "--resource=True"), tmp_path, after, steps)
    assert sorted(end) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(end[name], value, rtol=0, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(np.linalg.norm(end["entities"], axis=1), 1.0, atol=1e-6)
    average = "entities/ExponentialMovingAverage"
    assert np.abs(end[average] - end["entities"]).max() > 0.03
