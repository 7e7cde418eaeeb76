"""Spark brings this package to executors that lack it, by the commands of docs/prove/spark.md."""

import importlib.metadata
import os
import re
import shutil

import numpy as np
import pyarrow.parquet
import pytest

from semisync.cli import main
from semisync.common.distribution import NAME
from tests.downstream import environments
from tests.support.require import ROOT, skip_without

pytestmark = pytest.mark.long

OTHERS = sorted({each.metadata["Name"] for each in importlib.metadata.distributions()} - {NAME})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        skip_without("spark", "there is no java")
    pytest.importorskip("pyspark")
    return environments.build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def driver(wheel, tmp_path_factory):
    """The programs of an environment that has this package."""
    return environments.make(tmp_path_factory.mktemp("driver") / "scoring", wheel, OTHERS)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The programs of one that lacks it alone."""
    return environments.make(tmp_path_factory.mktemp("bare") / "bare", packages=OTHERS)


@pytest.fixture(scope="module")
def converted(tf2_models, data, tmp_path_factory):
    """The conversion, and its scores on one machine."""
    folder = tmp_path_factory.mktemp("converted")
    prefix, model = str(tf2_models.folder / "model.ckpt"), str(folder / "model")
    assert main(["convert", prefix, model, "--model", "--output", "logits"]) == 0
    given = ["score", data, "--converted", model, "--input", "user=user_id", "--sigmoid"]
    alone = str(folder / "alone.parquet")
    assert main([*given, "--key", "id", "--label", "y", "--out", alone]) == 0
    return model, alone


def page(words, data, converted):
    """The command of the page that has these words, with this machine's paths and columns."""
    text = (ROOT / "docs" / "prove" / "spark.md").read_text("utf-8")
    (found,) = (b for b in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) if words in b)
    for old, new in (
        ("yarn", "'local-cluster[2,1,1024]'"),
        ("hdfs:///rows", data),
        ("hdfs:///torchrec", "scores"),
        ("/shared/converted", converted),
        ("row_id --label label", "id --label y"),
    ):
        assert old in found
        found = found.replace(old, new)
    return found


def run(command, folder, driver, **variables):
    """(the exit code of a command in bash, what it said)"""
    set_up = ["PATH={}:$PATH".format(driver), "export SPARK_LOCAL_IP=127.0.0.1"]
    set_up += ["export {}={}".format(*each) for each in variables.items()]
    done = environments.run(["bash", "-ec", "\n".join([*set_up, command])], cwd=str(folder))
    return done.returncode, done.stdout + done.stderr


def check_scores(folder, alone):
    found, expected = (pyarrow.parquet.read_table(p).sort_by("id") for p in (folder, alone))
    assert found["id"].to_pylist() == expected["id"].to_pylist()
    for name in ("score", "logit"):
        assert np.abs(found[name].to_numpy() - expected[name].to_numpy()).max() < 1e-6


def test_a_packed_environment_scores(driver, data, converted, tmp_path):
    os.symlink(driver.parent, tmp_path / "scoring")
    code, said = run(page("tar -C scoring", data, converted[0]), tmp_path, driver)
    assert code == 0, said
    check_scores(tmp_path / "scores", converted[1])


def test_the_wheel_alone_scores(wheel, driver, bare, data, converted, tmp_path):
    shutil.copy(wheel, tmp_path)
    command, python = page("cp semisync_ctr", data, converted[0]), bare / "python"
    lacks = environments.run([python, "-c", "import migrate"], cwd=str(tmp_path))
    assert "No module named 'migrate'" in lacks.stderr
    code, said = run(command, tmp_path, driver, PYSPARK_PYTHON=python)
    assert code == 0, said
    check_scores(tmp_path / "scores", converted[1])
