"""`semisync migrate`: the whole way from a checkpoint to a model in torch, with its proof.

    semisync migrate CHECKPOINT --data rows.parquet --label click --out migrated

The exit code is the verdict's.
"""

import argparse
import sys

from migrate.cli.tensors import add_tensors, tensors
from migrate.model.vocabulary_files import add_assets
from migrate.scoring.options import add_inputs, add_tensorflow, given
from migrate.servers import add_plugins
from semisync.answers import add_json, answer
from semisync.common.terminal import say
from semisync.migration.settings import MARGIN, ROWS_AT_A_TIME, STEP_ROWS, STEPS, Settings

_EXAMPLES = """The data hold what the graph is fed: each input takes the column of its name, and the
one that its loss compares with the labels. COL in --type and --fill may be a pattern such as 'C*'.
What is in DIR already, of the same checkpoint, graph, data and options, is not made again.

examples:
  semisync migrate checkpoints --data clicks.parquet --label click --out migrated
  semisync migrate model.ckpt-40000 --data 'day=31/*.parquet' --label click --key row_id \\
    --input user_id=user --feed keep_prob=1.0 --tf-python .venv-tf1/bin/python --out migrated"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.description = "convert a model, compare it with TensorFlow's, and write one report"
    parser.epilog = _EXAMPLES
    add = parser.add_argument
    add(
        "checkpoint",
        metavar="CHECKPOINT",
        help="its prefix, or its directory; a SavedModel's directory; the file of a frozen graph",
    )
    add(
        "--data",
        metavar="DATA",
        required=True,
        help="rows of raw features: a Parquet, ORC, CSV, TSV or TFRecord file, a folder, a glob",
    )
    add("--label", metavar="COL", required=True, help="column of labels, 0 or 1")
    add("--out", metavar="DIR", required=True, help="the folder to write, or to go on with")
    add("--key", metavar="COL", help="column that names a row; without it the rows are numbered")
    add("--meta", metavar="FILE", help="the MetaGraph (default: that of the checkpoint)")
    add_plugins(parser)
    add_assets(parser)
    add("--margin", metavar="M", type=float, default=MARGIN, help="in AUC (default: %(default)g)")
    add(
        "--steps",
        metavar="N",
        type=int,
        default=STEPS,
        help="of training to compare; 0 for a model that is no longer trained "
        "(default: %(default)s)",
    )
    add(
        "--batch-size",
        metavar="N",
        type=int,
        help=f"rows at a time, for a graph that says so inside (default: {ROWS_AT_A_TIME:,}; "
        f"{STEP_ROWS} of a step of training)",
    )
    add(
        "--resume",
        action="store_true",
        help="go on with what an interruption left in DIR, as is done without it too",
    )
    add_json(parser, "what report.json holds")
    _add_inputs(parser.add_argument_group("the model's inputs and its output"))
    add_tensors(parser.add_argument_group("what each tensor becomes"))
    add_tensorflow(parser.add_argument_group("TensorFlow's side"))


def _add_inputs(group: "argparse._ArgumentGroup") -> None:
    add_inputs(group)
    add = group.add_argument
    add("--output", metavar="NAME", help="the tensor that scores (default: as the graph says)")
    add("--column", metavar="N", type=int, help="of an output with several per row, from 0")
    add(
        "--sigmoid",
        action="store_true",
        help="the output is a logit, though no loss in the graph says so",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the whole migration; returns the verdict's exit code."""
    from semisync.common.errors import UsageError

    if args.steps < 0 or not args.timeout > 0:
        raise UsageError("--steps is 0 or more, --timeout more than 0")
    if args.batch_size is not None and args.batch_size < 1:
        raise UsageError("--batch-size is 1 or more")
    from semisync.migration.following import following
    from semisync.migration.report import write
    from semisync.migration.run import migrate
    from semisync.migration.words import guessed

    try:
        migration = migrate(_settings(args))
    except KeyboardInterrupt:
        say("", "semisync migrate: interrupted; the same command goes on from there", error=True)
        raise
    after = following(args, migration)
    written = write(migration, after)
    lines = ["{}: {}".format(migration.verdict.value.replace("_", " "), migration.sentence)]
    lines += filter(None, [guessed(migration)])
    lines += ["report in {}".format(written.page)]
    lines += ["next, {}: {}".format(*one) for one in after]
    answer(args.json, written.record, lines)
    return migration.verdict.exit_code


def _settings(args: argparse.Namespace) -> Settings:
    from parity.inputs.checks import check_margin

    check_margin(args.margin)
    return Settings(
        checkpoint=args.checkpoint,
        data=args.data,
        label=args.label,
        out=args.out.rstrip("/") or args.out,
        meta=args.meta,
        assets=args.asset,
        key=args.key,
        output=args.output,
        column=args.column,
        sigmoid=args.sigmoid,
        **given(args)._asdict(),
        python=args.tf_python or sys.executable,
        modules=args.tf_import,
        timeout=args.timeout,
        margin=args.margin,
        steps=args.steps,
        batch_size=args.batch_size,
        plan=tensors(args),
    )
