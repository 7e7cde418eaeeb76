"""A job that runs several train ops in turns is as exact as one that has a single train op.

The reference is the job as it was, in one process, on the same batches in the same rounds.
"""

import numpy as np
import pytest

from semisync import audit
from tests.jobs.compared import alone, changed, job
from tests.jobs.run import read_checkpoint
from tests.jobs.unions import numbered


class Gan:
    """A GAN with so many discriminators, each trained so many times per round.

    Attributes:
        names: of its optimizers, as those of the audit logs.
        round: the numbers of the optimizers in the order in which a round trains them.
        job: the `Job`.
    """

    def __init__(self, discriminators=1, steps=1, own_steps=False):
        self.names = ["discriminator_%d" % n for n in range(discriminators)] + ["generator"]
        self.round = [n for n in range(discriminators) for _ in range(steps)] + [discriminators]
        self.job = job(
            "gan",
            "--discriminators=%d" % discriminators,
            "--discriminator_steps=%d" % steps,
            "--own_steps=%s" % own_steps,
        )

    def logs(self, run):
        """Paths of the audit logs of the changed job."""
        return [str(run.directory / (name + ".jsonl")) for name in self.names]

    def unions(self, logs, runs):
        """The batches of each run of the one process: lists of (worker, which of its file)."""
        steps = [numbered(log, False) for log in logs]
        order = [self.round[n % len(self.round)] for n in range(runs)]
        places = [[n for n in range(runs) if order[n] == own] for own in range(len(logs))]
        return [
            [(worker, places[own][which]) for worker, which in steps[own][order[:n].count(own)]]
            for n, own in enumerate(order)
        ]


@pytest.mark.parametrize(
    "gan, lengths",
    [
        (Gan(), (12, 8)),  # at the end one worker trains alone
        (Gan(steps=3, own_steps=True), (12, 12)),
        (Gan(discriminators=3), (12, 12)),
    ],
    ids=["one_sibling", "three_times_per_round", "three_siblings"],
)
@pytest.mark.long
@pytest.mark.one_tensorflow
def test_the_changed_job_trains_as_one_process_in_the_same_rounds(gan, lengths, tmp_path):
    after = changed(gan.job, tmp_path, lengths)
    logs = gan.logs(after)
    stalenesses = {b["staleness"] for log in logs for s in audit.steps(log) for b in s["batches"]}
    assert stalenesses == {0}
    assert sum(audit.check(log)["admitted"] for log in logs) == sum(lengths)
    unions = gan.unions(logs, max(lengths))
    assert [len(batches) for batches in unions] == [
        sum(n < length for length in lengths) for n in range(max(lengths))
    ]
    begin = read_checkpoint(str(after.model / "model.ckpt-0"))
    end = after.variables()
    expected = alone(gan.job, tmp_path, after, unions)
    assert sorted(end) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(end[name], value, rtol=0, atol=1e-6, err_msg=name)
    kernels = [name for name in end if name.endswith("kernel")]
    assert all(np.abs(end[name] - begin[name]).max() > 0.03 for name in kernels)  # it did train
