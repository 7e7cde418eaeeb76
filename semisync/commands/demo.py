"""`semisync demo`: the whole story in one command, on a generated click log or on a file.

1. A DeepFM with BatchNorm is trained on a local TensorFlow cluster with stragglers, five times on
   the same batches with the same hyperparameters: asynchronously, with SyncReplicasOptimizer,
   semi-synchronously, with a bound on the mean staleness ("balanced"), and on exact global batches.
   A table has the AUC of each minus the last.
2. The semi-synchronous checkpoint is migrated to torch, as `semisync migrate` does: the model is
   converted, and compared with TensorFlow's on the held-out rows.

The exit code is the verdict's.
"""

import argparse
import sys

from semisync.answers import add_json, answer

_EXAMPLES = """examples:
  semisync demo
  semisync demo --data day_0.tsv --workers 8 --out out/criteo"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.description = (
        "train, convert and compare, in one go\n"
        "writes report.html, report.json, the held-out rows and the migrated model into DIR"
    )
    parser.epilog = _EXAMPLES
    add = parser.add_argument
    add(
        "--data",
        metavar="FILE",
        help="a file of Criteo's format, CSV, TSV, Parquet, ORC, JSON lines or TFRecord, or a "
        "folder of them; default: a generated click log whose optimal AUC is known",
    )
    add("--out", metavar="DIR", default="out/demo", help="output folder (default: %(default)s)")
    add(
        "--workers",
        metavar="N",
        type=int,
        default=4,
        help="number of workers (default: %(default)s)",
    )
    add(
        "--tf-python",
        metavar="PYTHON",
        default=sys.executable,
        help="interpreter with TensorFlow 1.15 or 2.x to train with (default: this one)",
    )
    add_json(parser, "what report.json holds")


def run(args: argparse.Namespace) -> int:
    """Runs the demo; returns the verdict's exit code."""
    from semisync.demo.story import tell

    told = tell(args.data, args.out, args.workers, args.tf_python)
    answer(args.json, told.record)
    return told.exit_code
