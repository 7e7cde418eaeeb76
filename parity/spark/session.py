"""A Spark session for a command, and files as its DataFrames."""

import contextlib
import os
import pathlib
import shutil
import sys
from typing import Any, Iterator

from semisync.common.errors import BadInput, UsageError
from semisync.common.extras import extra

_TASKS = "spark.sql.shuffle.partitions"
_ROWS_PER_TASK = 1_000_000  # which it sorts in a part of its executor's memory
_OURS = "semisync.common.errors."  # how a traceback of an executor's Python ends
_FORMATS = ("parquet", "orc")


def start(master: str, **settings: str) -> Any:
    """The session that runs, or a new one.

    Args:
        master: as spark-submit takes it: local[4], local-cluster[2,1,1024], spark://HOST:PORT.
        settings: of a new one, by Spark's names, with _ for a dot.

    Raises:
        MissingExtra: without pyspark.
        UsageError: without Java.
        BadInput: it does not start.
    """
    with extra("spark", "to compare on Spark"):
        import pyspark
        from pyspark.sql import SparkSession
    home = os.environ.get("JAVA_HOME")
    if not (home and os.access(os.path.join(home, "bin", "java"), os.X_OK)) and not shutil.which(
        "java"
    ):
        raise UsageError(
            "Spark needs Java 17 or later, but there is no java on PATH or under JAVA_HOME"
        )
    # A local cluster's workers look for Spark's jars there.
    os.environ.setdefault("SPARK_HOME", str(pathlib.Path(pyspark.__file__).parent))
    builder = SparkSession.builder.master(master).appName("semisync parity")
    builder = builder.config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    for name, value in settings.items():
        builder = builder.config("spark." + name.replace("_", "."), value)
    with explained(f"Spark does not start with the master {master}"):
        return builder.getOrCreate()


@contextlib.contextmanager
def tasks_for(session: Any, rows: int) -> Iterator[int]:
    """Yields how many tasks a shuffle has, the session's number or, for many rows, more."""
    before = int(str(session.conf.get(_TASKS)))
    tasks = max(before, rows // _ROWS_PER_TASK)
    session.conf.set(_TASKS, str(tasks))
    try:
        yield tasks
    finally:
        session.conf.set(_TASKS, str(before))


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """A context in which an error of Spark's becomes one sentence, after `what`.

    Raises:
        BadInput: Spark raised one.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        ours = [line.partition(": ")[2] for line in lines if line.startswith(_OURS)]
        causes = [line for line in lines if line.startswith("Caused by: ")]
        thrown = [line[2:] for line in lines if line.startswith(": ")]  # as py4j gives it
        reason = (ours or causes[-1:] or thrown or lines or [type(error).__name__])[0]
        raise BadInput(f"{what}: {' '.join(reason.split())[:300]}") from error


def read(session: Any, path: str) -> Any:
    """The DataFrame of a file, folder or pattern of Parquet or ORC, as Spark reads it.

    Raises:
        BadInput: it is neither, or not there.
    """
    for kind in _FORMATS[::-1] if path.endswith(".orc") else _FORMATS:
        with contextlib.suppress(BadInput), explained(path):
            frame = session.read.format(kind).load(path)
            if frame.columns:
                return frame
    # Once more, for the reason that Spark gives.
    with explained(f"Spark cannot read {path} as Parquet or ORC"):
        return session.read.format(_FORMATS[0]).load(path)
