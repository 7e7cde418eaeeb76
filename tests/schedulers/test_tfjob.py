"""Whole jobs under what Kubeflow's TFJob sets and does, whose processes are killed."""

import pathlib
import types

import pytest

from semisync import audit
from semisync.common.compat import tf
from tests.jobs import data
from tests.schedulers.manifests import manifest
from tests.schedulers.operator import Job
from tests.schedulers.train import EVALUATED
from tests.support import job_changes
from tests.support.require import ROOT, tf1_python
from tests.wrap import fault_job
from tests.wrap.fault_cluster import Progress, check_audit, check_checkpoints, lineage

STEPS = 300  # of the Estimator's job: too many to end before it is told to GO
GO = "go"

# A pause per batch until the file GO is there; an evaluation at once, and a short one; and none of
# TensorFlow's fixed sleeps.
ESTIMATOR = """
-     return dataset.repeat(num_epochs).batch(batch_size).prefetch(1)
+     def pause(labels):
+         import time
+
+         time.sleep(0 if os.path.exists("go") else 1.0)
+         return labels
+
+     def slowly(features, labels):
+         slow = tf.py_func(pause, [labels], tf.float32)
+         slow.set_shape(labels.shape)
+         return features, slow
+
+     return dataset.repeat().batch(batch_size).map(slowly)

-     eval_spec = tf.estimator.EvalSpec(lambda: input_fn(args.test_data, args.batch_size))
+     evaluated = lambda: input_fn(args.test_data, args.batch_size)
+     eval_spec = tf.estimator.EvalSpec(evaluated, steps=1, start_delay_secs=0, throttle_secs=1)

- if __name__ == "__main__":
+ if __name__ == "__main__":
+     from tests.jobs.haste import make_haste
+
+     make_haste()
"""


def members(progress, role):
    """The processes of a role whose batches were applied so far."""
    progress.look()
    return {member for member in progress.last if "/job:{}/".format(role) in member}


def kill_and_see_it_train(job, progress, role):
    """Kills the first pod of a role, and waits until its successor has trained, and the job."""
    seen = progress.look()
    job.until(lambda: progress.look() > seen + 2)
    before = members(progress, role)
    job.kill(role, 0)
    job.until(lambda: (role, 0, 137) in job.ends)
    if before:  # parameter servers train none
        job.until(lambda: members(progress, role) - before)
    seen = progress.look()
    job.until(lambda: progress.look() > seen + 2)


def assert_chief_and_workers_alone(progress):
    """Their batches were applied, and nobody else's."""
    chief, workers = members(progress, "chief"), members(progress, "worker")
    assert chief and workers and set(progress.last) == chief | workers


def session_job(policy):
    """The page's manifest for `tests.schedulers.train`, with one worker and another policy."""
    job = manifest("TFJob")
    roles = job["spec"]["tfReplicaSpecs"]
    (container,) = roles["Worker"]["template"]["spec"]["containers"]  # the one of all roles
    container.update(command=["python", "-m", "tests.schedulers.train", "/shared"], args=[])
    for role in roles.values():
        role["restartPolicy"] = policy
    roles["Worker"]["replicas"] = 1
    return job


@pytest.mark.long
@pytest.mark.parametrize(("version", "policy"), [(1, "ExitCode"), (2, "OnFailure")])
def test_killed_pods_start_again_and_every_batch_counts_once(version, policy, tmp_path, request):
    if version == 2:
        programs = request.getfixturevalue("interpreters")
    else:
        programs = pathlib.Path(tf1_python()).parent
    out = tmp_path / "shared"
    trained = types.SimpleNamespace(out=out, audit=str(out / fault_job.AUDIT))
    with Job(session_job(policy), tmp_path, programs, PYTHONPATH=str(ROOT)) as job:
        progress = Progress(trained.audit)
        for role in ("worker", "chief", "ps"):
            kill_and_see_it_train(job, progress, role)
        job.until(lambda: (out / EVALUATED).exists())
        (out / fault_job.STOP).touch()
        assert job.wait() == "Succeeded", job.story()
        assert not job.running
    assert_chief_and_workers_alone(progress)
    check_audit(trained)
    assert check_checkpoints(trained) > 2


@pytest.mark.long
def test_an_estimators_job_ends_at_its_last_step_whatever_is_killed(tmp_path):
    job_manifest = manifest("TFJob")
    roles = job_manifest["spec"]["tfReplicaSpecs"]
    (container,) = roles["Worker"]["template"]["spec"]["containers"]
    container["args"].append("--train_steps={}".format(STEPS))
    script, change = job_changes.read("estimator_model_fn")
    (tmp_path / "train.py").write_text(job_changes.apply(script, change + ESTIMATOR))
    (tmp_path / "shared").mkdir()
    for name in ("train", "test"):
        data.write(tmp_path / "shared" / (name + ".csv"), data.rows(0))
    log, model = tmp_path / "audit.jsonl", tmp_path / "shared" / "model"
    programs = pathlib.Path(tf1_python()).parent
    with Job(job_manifest, tmp_path, programs, PYTHONPATH=str(ROOT)) as job:
        progress = Progress(str(log))
        for role in ("worker", "chief", "ps"):
            kill_and_see_it_train(job, progress, role)
        job.until(lambda: list(model.glob("eval/events*")))
        job.kill("evaluator", 0)
        (tmp_path / GO).touch()
        assert job.wait() == "Succeeded", job.story()
    newest = tf.train.latest_checkpoint(str(model))
    step = int(tf.train.load_checkpoint(newest).get_tensor("global_step"))
    assert step >= STEPS
    assert len(lineage(audit.read(str(log)))) == step
    assert audit.check(str(log))["admitted"] >= 2 * STEPS
    assert_chief_and_workers_alone(progress)
