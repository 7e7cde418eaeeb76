"""The arguments with which `semisync verify` compares behaviour."""

import argparse
import sys
from typing import Any

from migrate.model.vocabulary_files import add_assets
from migrate.scoring.options import add_inputs, add_tensorflow, given
from migrate.servers import add_plugins
from semisync.common.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    group = parser.add_argument_group("what the model does, instead of what it holds")
    add = group.add_argument
    add(
        "--forward",
        metavar="DATA",
        help="compare the outputs of OUT/model.py with TensorFlow's on a data set, as `semisync "
        "score` reads it, and name the first node that differs",
    )
    add(
        "--steps",
        metavar="N",
        type=int,
        help="compare N training steps with TensorFlow's: the loss, every variable and slot",
    )
    add("--data", metavar="DATA", help="for --steps: a data set with the labels, taken in order")
    _add_sides(parser.add_argument_group("how both sides are run"))
    add_inputs(parser.add_argument_group("what both sides are fed"))
    add_tensorflow(parser.add_argument_group("TensorFlow's side"))


def _add_sides(group: Any) -> None:
    add = group.add_argument
    add(
        "--output",
        metavar="TENSOR",
        action="append",
        help="of model.py, for --forward (default: all); may be repeated",
    )
    add("--no-onnx", action="store_true", help="for --forward: do without onnxruntime")
    add(
        "--rows",
        metavar="N",
        type=int,
        help="for --forward: N rows, drawn so that rare values occur (default: 10000)",
    )
    add("--batch-size", metavar="N", type=int, help="rows at a time, a step's (default: 512)")
    add("--meta", metavar="FILE", help="the MetaGraph (default: that of the conversion)")
    add_plugins(group)
    add_assets(group)


def check(args: argparse.Namespace) -> None:
    """Refuses meaningless arguments before anything is opened."""
    if args.steps is not None and args.data is None:
        raise UsageError("--steps takes its batches from --data; name a data set with the labels")
    if args.data is not None and args.steps is None:
        raise UsageError("--data is for --steps; --forward names its own data set")
    if args.forward is None and (args.output or args.rows is not None or args.no_onnx):
        raise UsageError("--output, --rows and --no-onnx are for --forward")
    of_rows = [args.input, args.sparse, args.feed, args.type, args.fill, args.text]
    of_rows += [args.meta, args.batch_size]
    if args.forward is None and args.steps is None and any(one for one in of_rows):
        raise UsageError(
            "--input, --sparse, --feed, --type, --fill, --text, --meta and --batch-size are for "
            "--forward and --steps"
        )
    if (args.batch_size is not None and args.batch_size < 1) or not args.timeout > 0:
        raise UsageError("--batch-size is 1 or more, --timeout more than 0")


def setting(args: argparse.Namespace) -> Any:
    """The `Setting` that the arguments describe."""
    from migrate.behaviour.setting import ROWS_AT_A_TIME, Setting
    from migrate.scoring.run import Reading

    said = given(args)
    reading = Reading(
        said.types, said.fills, text=said.text, size=args.batch_size or ROWS_AT_A_TIME
    )
    python = args.tf_python or sys.executable
    return Setting(
        args.meta,
        said.named,
        said.feeds,
        reading,
        python,
        args.tf_import,
        args.timeout,
        args.asset,
    )
