"""A changed job on a cluster, and the job as it was in one process, on the same batches.

For scripts that train until their data ends, on either TensorFlow.
"""

import shutil

from semisync.common.compat import tf
from tests.jobs import data
from tests.jobs.jobs import Job
from tests.jobs.run import Run
from tests.jobs.unions import rows_of
from tests.support import job_changes

WORKERS = 2
NAMES = {"gan", "own_saver", "transe"}  # of their scripts


def job(name, *arguments):
    """The `Job` of a script that takes these arguments and the usual ones."""
    usual = [
        "--ps_hosts={ps_hosts}",
        "--worker_hosts={worker_hosts}",
        "--job_name={job}",
        "--task_index={task}",
        "--data={data}",
        "--ckpt_dir={model}",
        "--batch_size={batch_size}",
    ]
    assert name in NAMES
    return Job(name, 2, usual + list(arguments), [], False, (), None)


def changed(job, directory, lengths):
    """The `Run` of the changed job, once it has ended; `lengths`: batches of each worker."""
    files = [directory / "part-{}.csv".format(worker) for worker in range(WORKERS)]
    for worker, path in enumerate(files):
        data.write(path, data.rows(worker)[: lengths[worker] * data.BATCH])
    place = directory / "after"
    place.mkdir()
    return _ended(job, job_changes.apply(*job_changes.read(job.name)), place, files, data.BATCH)


def alone(job, directory, after, unions):
    """The variables of the job as it was, in one process, from where the changed one began.

    Args:
        after: the `Run` of the changed job.
        unions: the batches of each run, lists of (worker, which of its file).
    """
    place = directory / "alone"
    model = place / "model"
    model.mkdir(parents=True)
    for part in after.model.glob("model.ckpt-0.*"):
        shutil.copy(str(part), str(model))
    tf.train.update_checkpoint_state(str(model), str(model / "model.ckpt-0"))
    data.write(place / "data.csv", rows_of(unions, WORKERS))
    script, _ = job_changes.read(job.name)
    run = _ended(job, script, place, [place / "data.csv"], WORKERS * data.BATCH)
    return run.variables()


def _ended(job, script, directory, files, rows):
    run = Run(job, script, directory, files, rows, None)
    try:
        run.wait()
    finally:
        run.stop()
    return run
