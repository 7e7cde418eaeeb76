"""`semisync train` under what Kubeflow's PyTorchJob sets and does, while its pods are killed."""

import os
import pathlib
import shutil
import signal
import sys

import pytest

from migrate.training.checkpoints import CHECKPOINTS, Checkpoints
from tests.schedulers.manifests import manifest
from tests.schedulers.operator import Job
from tests.support.processes import running_with
from tests.support.programs import output_of
from tests.support.require import ROOT
from tests.training.kills import contents, differing

MORE = ["--batch-size", "256", "--epochs", "6", "--checkpoint-every", "4"]


def elastic():
    """The page's manifest, its training longer."""
    given = manifest("PyTorchJob")
    _container(given)["args"] += MORE
    return given


def with_a_master():
    """The same without torchrun: the operator sets each process's rank."""
    given = elastic()
    del given["spec"]["elasticPolicy"]
    _container(given)["command"][:3] = ["semisync"]
    roles = given["spec"]["pytorchReplicaSpecs"]
    roles["Worker"]["replicas"] = 1
    roles["Master"] = roles["Worker"]
    return given


def _container(given):
    (container,) = given["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    return container


@pytest.fixture
def shared(job, clicks, tmp_path):
    """The folder that all pods mount."""
    shutil.copytree(str(job), str(tmp_path / "shared"))
    shutil.copy(str(clicks), str(tmp_path / "shared"))
    return tmp_path / "shared"


@pytest.fixture(scope="module")
def uninterrupted(job, clicks, interpreters, tmp_path_factory):
    """The folder of a training in two processes that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "trained"
    words = ["train", str(job / "clicks.ckpt"), "--data", str(clicks), "--label", "clicked"]
    output_of(interpreters / "semisync", *words, "--out", out, "--nproc", "2", *MORE)
    return out


def kill_pod(pods, key):
    pods.kill(*key)
    pods.until(lambda: (*key, 137) in pods.ends)


def kill_process(pods, key):
    """kill -9 of a pod's training alone: torchrun's agent lives on."""
    found = running_with("semisync train", below=pods.running[key].pid)
    os.kill(found[0], signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "kills"),
    [
        pytest.param(
            elastic(), [(kill_process, ("worker", 1)), (kill_pod, ("worker", 0))], id="torchrun"
        ),
        pytest.param(
            with_a_master(), [(kill_pod, ("worker", 0)), (kill_pod, ("master", 0))], id="a master"
        ),
    ],
)
def test_killed_pods_start_anew_and_end_with_the_same_bits(
    given, kills, shared, uninterrupted, interpreters, tmp_path
):
    trained = shared / "trained"
    checkpoints = Checkpoints(str(trained / CHECKPOINTS))
    programs = "{}{}{}".format(interpreters, os.pathsep, pathlib.Path(sys.executable).parent)
    image = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    image["PYTHON_EXEC"] = str(interpreters / "python")  # torchrun's, for the processes it starts
    with Job(given, tmp_path, programs, **image) as pods:
        reached = 0
        for kill, key in kills:
            pods.until(lambda reached=reached: (checkpoints.steps or [0])[-1] > reached)
            kill(pods, key)
            reached = checkpoints.steps[-1]
        assert pods.wait() == "Succeeded", pods.story()
    assert {end.code for end in pods.ends} <= {0, 1, 3, 137}, pods.story()  # 1 is torchrun's
    said = "".join(pods.log(*key).read_text() for key in dict(kills).values())
    assert "lost another one (" in said and "internal error" not in said, said
    (wanted_step, wanted), (step, found) = contents(uninterrupted), contents(trained)
    assert step == wanted_step
    assert differing(wanted, found) == []
    whole, killed = ((out / "report.json").read_text() for out in (uninterrupted, trained))
    assert whole == killed
