"""The demo's steps in order, each a few lines: read, train, convert, score, compare, report."""

import json
import logging
import os
import pathlib
import shutil
import sys
import time
from typing import Any, Dict, Optional

import numpy as np

from parity import Comparison, auc, compare
from parity.cli.command import EXIT
from semisync.cluster.local import LocalCluster
from semisync.common.errors import UsageError
from semisync.common.files import write_text
from semisync.demo import finding
from semisync.demo.data import click_log
from semisync.demo.progress import Progress

MODES = ("async", "native-sync", "semi-sync", "sync")
PS = 2
STALENESS_BOUND = 4  # global steps
LEARNING_RATE = 0.006  # of Adam: the best for exact global batches in benchmarks/demo_search.py
PAUSE = 0.01  # seconds per batch besides computing, for a larger model
SLOW_SHARE, SLOW_FACTOR = 0.3, 5  # stragglers: their share of the batches, times as slow
BATCHES = 1200  # per mode, of all workers together
RECORD = "verified.json"  # of the conversion's verification, as `semisync verify --json` prints it
TIMEOUT = 600  # seconds, for all training


def tell(data: Optional[str], out: str, workers: int, tf_python: str) -> int:
    """Runs the whole demo.

    Args:
      data: a file or folder for `reading.read`, or None for a generated log.
      out: a folder of an earlier demo, which is replaced, or a new one.
      workers: 1 or more.
      tf_python: an interpreter that can import TensorFlow.

    Returns: the verdict's exit code.
    """
    if workers < 1:
        raise UsageError(f"--workers takes a whole number of 1 or more, not {workers}")
    started = time.monotonic()
    progress = Progress(sys.stdout)
    folder = _own_folder(out)
    train, test = _read(data, folder, progress)
    settings = settings_for(train, workers)
    modes = _train(folder, settings, workers, tf_python, progress)
    _score(folder, modes, np.asarray(test.labels))
    progress.table(modes, test.bayes_auc)
    progress.end(finding.sentence(modes))
    converted = _convert(folder, progress)
    comparison = _compare(folder, test, converted["verified"], progress)
    record = {
        "schema": "semisync/demo/2",
        "data": _described(data, train, test),
        "settings": settings,
        "modes": modes,
        "converted": converted,
        "parity": comparison.to_json(),
        "seconds": round(time.monotonic() - started, 1),
    }
    from semisync.demo import report

    page = report.write(folder, record, comparison)
    progress.end(f"{comparison.verdict.value}: report in {page} ({record['seconds']:.0f} s in all)")
    return EXIT[comparison.verdict]


def _own_folder(out: str) -> pathlib.Path:
    """Makes the folder, or removes an earlier demo's output from it."""
    folder = pathlib.Path(out)
    mark = folder / "training"
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not mark.is_dir()):
        raise UsageError(f"{out} holds something other than a demo's output; name a new folder")
    if folder.is_dir():
        for old in ("training", "converted"):
            shutil.rmtree(folder / old, ignore_errors=True)
        for old in ("report.html", "report.json", "scores.parquet", RECORD):
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
    with LocalCluster(
        tf_python, "semisync.demo.tensorflow.process", PS, workers, out, source
    ) as cluster:
        cluster.start_all(data=str(out / "data"), out=str(out), modes=MODES, **settings)
        cluster.wait(TIMEOUT, tick=lambda: progress.training(out, MODES))
    progress.training(out, MODES)
    return {mode: _measured(out / mode, mode, workers) for mode in MODES}


def _measured(folder: pathlib.Path, mode: str, workers: int) -> Dict[str, Any]:
    result = json.loads((folder / "result.json").read_text())
    # Our chief knows the staleness of every batch; in other modes each worker its own.
    tasks = [0] if mode in ("semi-sync", "sync") else range(workers)
    histogram: Dict[int, int] = {}
    for task in tasks:
        counts = json.loads((folder / f"staleness-{task}.json").read_text())
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
    scores = {name: np.load(folder / "training" / name / "scores.npy") for name in modes}
    for name, mode in modes.items():
        mode["auc"] = auc(labels, scores[name])
        if name != finding.EXACT:
            minus = finding.difference(labels, scores[finding.EXACT], scores[name])
            mode["minus_sync"] = minus._asdict()


def _convert(folder: pathlib.Path, progress: Progress) -> Dict[str, Any]:
    """Converts the semi-synchronous checkpoint into FOLDER/converted and compares every value."""
    import migrate
    from migrate.cli.verify import record
    from migrate.verification import verify

    progress.show("converting the semi-synchronous checkpoint")
    result = folder / "training" / "semi-sync" / "result.json"
    prefix = json.loads(result.read_text())["checkpoint"]
    started = time.monotonic()
    with migrate.open_checkpoint(prefix) as checkpoint:
        shards = len(checkpoint.shard_paths())
        plan = migrate.plan(checkpoint)
        manifest = migrate.convert(plan, str(folder / "converted"), verify=False)
    verified = record(verify(prefix, str(folder / "converted")))
    write_text(folder / RECORD, json.dumps(verified, indent=1) + "\n")
    tables = ", ".join(f"{t.name} {t.rows:,} x {t.dim}" for t in manifest.tables)
    progress.end(
        f"converted {os.path.basename(prefix)} ({shards} data shards) to TorchRec: {tables} and "
        f"{len(manifest.tensors)} tensors in all; {verified['rows']:,} rows verified"
    )
    return {
        "checkpoint": os.path.basename(prefix),
        "shards": shards,
        "tensors": len(manifest.tensors),
        "verified": verified,
        "seconds": round(time.monotonic() - started, 2),
    }


def _compare(
    folder: pathlib.Path, test: click_log.ClickLog, verified: Dict[str, Any], progress: Progress
) -> Comparison:
    """Scores the held-out rows with the converted model and compares.

    Args:
        verified: the record of the conversion's verification, which excludes the rare faults that
            so few rows cannot.
    """
    progress.show("scoring with TorchRec")
    import pyarrow
    import pyarrow.parquet

    # torchrec 1.8 uses a deprecated name of torch 2.13, which logs a warning at every import.
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)
    from semisync.demo.torch import deepfm

    model = deepfm.from_converted(str(folder / "converted"), test.fields, test.numeric)
    candidate = deepfm.score(model, test)
    baseline = np.load(folder / "training" / "semi-sync" / "scores.npy")
    columns = {
        "row": np.arange(test.rows),
        "label": np.asarray(test.labels, np.int8),
        "tensorflow": baseline,
        "torchrec": candidate,
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "scores.parquet")
    comparison = compare(np.asarray(test.labels), baseline, candidate, verified=verified)
    progress.end(
        f"AUC on the held-out rows: TensorFlow {comparison.baseline.auc:.6f}, "
        f"TorchRec {comparison.candidate.auc:.6f}, difference {comparison.delta:+.1e}"
    )
    return comparison


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
