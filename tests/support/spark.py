"""A Spark of two executor processes on this machine, one for all tests of a session."""

import importlib.util
import os
import shutil
import sys

import pytest

from tests.support.require import ROOT, skip_without

EXECUTORS = [pytest.param("local-cluster[2,1,512]", marks=pytest.mark.long, id="two executors")]


@pytest.fixture(scope="session", params=EXECUTORS)
def spark(request):
    """Real executors: each a process of its own, with a core and half a GiB."""
    if importlib.util.find_spec("pyspark") is None:
        skip_without("spark", "pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        skip_without("spark", "there is no java")
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    from parity.spark.session import start

    short_lived = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what compiles less starts faster
    session = start(
        request.param,
        executor_memory="512m",
        sql_shuffle_partitions="2",
        sql_adaptive_enabled="false",  # it plans large jobs, and makes three of each small one
        ui_enabled="false",
        executorEnv_PYTHONPATH=str(ROOT),
        driver_extraJavaOptions=short_lived,
        executor_extraJavaOptions=short_lived,
    )
    yield session
    session.stop()
