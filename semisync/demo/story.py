"""The demo's steps in order, each a few lines: read, train, migrate, report."""

import os
import pathlib
import platform
import shutil
import sys
import time
from typing import Any, Dict, NamedTuple, Optional

import numpy as np

from parity import auc
from semisync.cluster.forked import ForkedCluster
from semisync.cluster.local import LocalCluster
from semisync.common import json_text
from semisync.common.errors import UsageError
from semisync.demo import finding, needs
from semisync.demo.data import click_log
from semisync.demo.progress import Progress
from semisync.migration.run import Migration, migrate
from semisync.migration.settings import Settings

MODES = ("async", "native-sync", "semi-sync", "balanced", "sync")
PS = 2
STALENESS_BOUND = 4  # global steps
LEARNING_RATE = 0.006  # of Adam: the best for exact global batches in benchmarks/demo_search.py
PAUSE = 0.01  # seconds per batch besides computing, for a larger model
SLOW_SHARE, SLOW_FACTOR = 0.3, 5  # stragglers: their share of the batches, times as slow
BATCHES = 1200  # per mode, of all workers together
TIMEOUT = 600  # seconds, for all training
_FOLDERS = ("training", "migration")
_FILES = ("report.html", "report.json", "modes.svg", "held_out.parquet")


class Told(NamedTuple):
    """The contents of report.json, and the verdict's exit code."""

    record: Dict[str, Any]
    exit_code: int


def tell(data: Optional[str], out: str, workers: int, tf_python: str) -> Told:
    """Runs the whole demo.

    Args:
        data: a file or folder for `reading.read`, or None for a generated log.
        out: a folder of an earlier demo, which is replaced, or a new one.
        workers: 1 or more.
        tf_python: an interpreter that can import TensorFlow.
    """
    if workers < 1:
        raise UsageError(f"--workers takes a whole number of 1 or more, not {workers}")
    needs.look(tf_python)
    started = time.monotonic()
    progress = Progress(sys.stdout)
    folder = _own_folder(out)
    train, test = _read(data, folder, progress)
    settings = settings_for(train, workers)
    modes = _train(folder, settings, workers, tf_python, progress)
    _score(folder, modes, np.asarray(test.labels))
    progress.table(modes, test.bayes_auc)
    progress.end(finding.sentence(modes))
    progress.end("migrating the semi-synchronous checkpoint")
    migration = _migrate(folder, test, tf_python)
    from semisync.demo import report

    record = {
        "schema": "semisync/demo/3",
        "data": _described(data, train, test),
        "settings": settings,
        "modes": modes,
        **report.of_migration(migration),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        "seconds": round(time.monotonic() - started, 1),
    }
    page = report.write(folder, record, migration)
    verdict = migration.verdict.value.replace("_", " ")
    progress.end(f"{verdict}: report in {page} ({record['seconds']:.0f} s in all)")
    return Told(record, migration.verdict.exit_code)


def _own_folder(out: str) -> pathlib.Path:
    """Makes the folder, or removes an earlier demo's output from it."""
    folder = pathlib.Path(out)
    mark = folder / "training"
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not mark.is_dir()):
        raise UsageError(f"{out} holds something other than a demo's output; name a new folder")
    if folder.is_dir():
        for old in _FOLDERS:
            shutil.rmtree(folder / old, ignore_errors=True)
        for old in _FILES:
            (folder / old).unlink(missing_ok=True)
    mark.mkdir(parents=True)
    return folder


def _read(data: Optional[str], folder: pathlib.Path, progress: Progress) -> Any:
    """Reads the training and held-out logs, and saves them for the workers."""
    if data is None:
        from semisync.demo.data.generator import generate

        log = generate()
    else:
        from semisync.demo.data.reading import read

        log = read(data, note=progress.note)
    train, test = click_log.split(log)
    for name, part in (("train", train), ("test", test)):
        click_log.save(part, folder / "training" / "data" / name)
    optimum = "" if test.bayes_auc is None else f"; the best possible AUC is {test.bayes_auc:.4f}"
    progress.end(
        f"{log.name}: {len(log.fields)} fields, {train.rows:,} rows to train on, "
        f"{test.rows:,} later ones held out ({np.mean(test.labels):.1%} clicks){optimum}"
    )
    return train, test


def settings_for(train: click_log.ClickLog, workers: int) -> Dict[str, Any]:
    """The settings of the cluster's processes; the global batch is one batch per worker."""
    batch = 256
    while batch > 32 and train.rows < 50 * batch * workers:
        batch //= 2
    return {
        "partitions": PS,
        "batch": batch,
        "batches": max(1, BATCHES // workers) * workers,
        "batches_per_step": workers,
        "bound": STALENESS_BOUND,
        "learning_rate": LEARNING_RATE,
        "pause": PAUSE,
        "slow_share": SLOW_SHARE,
        "slow_factor": SLOW_FACTOR,
    }


def _train(
    folder: pathlib.Path,
    settings: Dict[str, Any],
    workers: int,
    tf_python: str,
    progress: Progress,
) -> Dict[str, Dict[str, Any]]:
    """Trains every mode on one cluster; returns pace and staleness by mode."""
    out = (folder / "training").resolve()
    for mode in MODES:
        (out / mode).mkdir()
    source = str(pathlib.Path(__file__).resolve().parents[2])
    progress.end(
        f"training on a cluster of {PS} parameter servers and {workers} workers; "
        f"{settings['slow_share']:.0%} of the batches take {settings['slow_factor']} times as long"
    )
    with _cluster(tf_python, workers, out, source) as cluster:
        cluster.start_all(data=str(out / "data"), out=str(out), modes=MODES, **settings)
        cluster.wait(TIMEOUT, tick=lambda: progress.training(out, MODES))
    progress.training(out, MODES)
    return {mode: _measured(out / mode, workers) for mode in MODES}


def _cluster(tf_python: str, workers: int, out: pathlib.Path, source: str) -> LocalCluster:
    """The cluster, whose processes import semisync from the folder `source`; they are forked where
    this interpreter runs them."""
    more = ("semisync.demo.tensorflow.process", PS, workers, out, source)
    return ForkedCluster(*more) if tf_python == sys.executable else LocalCluster(tf_python, *more)


def _measured(folder: pathlib.Path, workers: int) -> Dict[str, Any]:
    result = json_text.loads((folder / "result.json").read_text())
    histogram: Dict[int, int] = {}
    for task in range(workers):
        counts = json_text.loads((folder / f"staleness-{task}.json").read_text())
        for staleness, count in counts.items():
            histogram[int(staleness)] = histogram.get(int(staleness), 0) + count
    batches = sum(histogram.values())
    mean = sum(staleness * count for staleness, count in histogram.items()) / max(batches, 1)
    return {
        "batches_per_second": result["batches_per_second"],
        "counted": result["counted"],
        "staleness": {
            "mean": mean,
            "max": max(histogram, default=0),
            "histogram": {str(key): histogram[key] for key in sorted(histogram)},
        },
    }


def _score(folder: pathlib.Path, modes: Dict[str, Dict[str, Any]], labels: np.ndarray) -> None:
    """Adds each mode's AUC, and its difference from that of exact synchronous training."""
    scores = {
        name: np.load(folder / "training" / name / "scores.npy", allow_pickle=False)
        for name in modes
    }
    for name, mode in modes.items():
        mode["auc"] = auc(labels, scores[name])
        if name != finding.EXACT:
            minus = finding.difference(labels, scores[finding.EXACT], scores[name])
            mode["minus_sync"] = minus._asdict()


def _migrate(folder: pathlib.Path, test: click_log.ClickLog, tf_python: str) -> Migration:
    """Carries the semi-synchronous model over to torch, and compares it on the held-out rows."""
    import pyarrow
    import pyarrow.parquet

    ids = pyarrow.array(np.ascontiguousarray(test.ids).reshape(-1))
    columns = {
        "ids": pyarrow.FixedSizeListArray.from_arrays(ids, len(test.fields)),
        "label": np.asarray(test.labels, np.int8),
    }
    data = folder / "held_out.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), data)
    result = folder / "training" / "semi-sync" / "result.json"
    settings = Settings(
        checkpoint=json_text.loads(result.read_text())["checkpoint"],
        data=str(data),
        label="label",
        out=str(folder / "migration"),
        python=tf_python,
    )
    return migrate(settings)


def _described(
    data: Optional[str], train: click_log.ClickLog, test: click_log.ClickLog
) -> Dict[str, Any]:
    return {
        "name": train.name,
        "source": "generated" if data is None else str(data),
        "fields": list(train.fields),
        "rows": {"train": train.rows, "held_out": test.rows},
        "clicks": {"train": int(np.sum(train.labels)), "held_out": int(np.sum(test.labels))},
        "bayes_auc": test.bayes_auc,
    }
