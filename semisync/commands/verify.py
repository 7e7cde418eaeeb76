"""`semisync verify PREFIX OUT`: does a converted directory hold what the checkpoint holds?

With --forward and --steps: does its model do what TensorFlow's does?
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from migrate.behaviour import arguments
from semisync.answers import add_json, answer

if TYPE_CHECKING:  # it imports torch, which --help does not need
    from migrate.verification import Verification

_EXAMPLES = """examples:
  semisync verify model.ckpt-1 converted
  semisync verify model.ckpt-1 converted --sample 1000 --json
  semisync verify model.ckpt-1 converted --forward rows.parquet --tf-python python3.7
  semisync verify model.ckpt-1 converted --steps 100 --data rows.parquet --batch-size 64 \\
    --input clicked=label --feed learning_rate=0.1"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "prefix",
        metavar="PREFIX",
        help="a checkpoint without .index, or its directory; a SavedModel's directory; the file of "
        "a frozen graph",
    )
    parser.add_argument("out", metavar="OUT", help="directory that `semisync convert` wrote")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="compare N rows of each tensor, drawn at random"
    )
    add_json(parser, "what was compared")
    arguments.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Compares and prints; returns 0 where everything agrees, 1 where something differs."""
    arguments.check(args)
    found = _found(args)
    told = {name: value for name, value, _, _ in found}
    whole = found[0][1] if len(found) == 1 else told
    answer(args.json, whole, (line for _, _, lines, _ in found for line in lines))
    return 0 if all(agrees for _, _, _, agrees in found) else 1


def _found(args: argparse.Namespace) -> List[Tuple[str, Dict[str, Any], List[str], bool]]:
    """The result of each requested comparison: its name, as JSON, as text, the verdict."""
    found: List[Tuple[str, Dict[str, Any], List[str], bool]] = []
    behaves = args.forward is not None or args.steps is not None
    if not behaves or args.sample is not None:
        from migrate.verification import verify

        values = verify(args.prefix, args.out, args.sample, assets=args.asset)
        found.append(("values", values.to_json(), lines_of(values), values.verified))
    if args.forward is not None:
        from migrate.behaviour.forward import ROWS, compare_forward
        from migrate.behaviour.text import forward_lines

        rows = ROWS if args.rows is None else args.rows
        setting = arguments.setting(args)
        onnx = not args.no_onnx
        scores = compare_forward(
            args.prefix, args.out, args.forward, setting, args.output, rows, onnx
        )
        found.append(("forward", scores.to_json(), forward_lines(scores), scores.equal))
    if args.steps is not None:
        from migrate.behaviour.text import training_lines
        from migrate.behaviour.training import compare_training

        setting = arguments.setting(args)
        steps = compare_training(args.prefix, args.out, args.data, setting, args.steps)
        found.append(("training", steps.to_json(), training_lines(steps), steps.equal))
    return found


def lines_of(result: Verification) -> List[str]:
    """The comparisons, and the differences."""
    lines = [*result.differences, *(f"note: {note}" for note in result.notes)]
    rows = f"{result.rows:,} rows of {result.tensors} tensors"
    if result.differing_rows:
        rows += f", {result.differing_rows:,} of which differ"
    if not result.verified:
        return [*lines, f"not verified: compared {rows}"]
    if result.sample is not None:
        found = (
            f"verified by a sample: {rows} agree; with {result.confidence:.0%} confidence at most "
            f"{result.bound:.2g} of any tensor's rows differ; the SHA-256 were not checked"
        )
    else:
        parts = ["model.py is what the conversion writes"] if result.source_agrees else []
        parts += [f"{rows} agree in every value"] if result.tensors else []
        parts += [f"{result.hashes} SHA-256 agree"] if result.hashes else []
        found = f"verified: {', '.join(parts)}"
    if result.unchecked:
        found += f"; not checked: {'; '.join(result.unchecked)}"
    return [*lines, found]
