"""`semisync verify PREFIX OUT`: does a converted directory hold what the checkpoint holds?"""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any, Dict

if TYPE_CHECKING:  # it imports torch, which --help does not need
    from migrate.verification import Verification

SCHEMA = "semisync.verification/1"

_EXAMPLES = """examples:
  semisync verify model.ckpt-1 converted
  semisync verify model.ckpt-1 converted --sample 1000 --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "prefix", metavar="PREFIX", help="a checkpoint without .index, or its directory"
    )
    parser.add_argument("out", metavar="OUT", help="directory that `semisync convert` wrote")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="compare N rows of each tensor, drawn at random"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(args: argparse.Namespace) -> int:
    """Compares and prints; returns 0 where everything agrees, 1 where something differs."""
    from migrate.verification import verify

    result = verify(args.prefix, args.out, args.sample)
    if args.json:
        print(json.dumps(record(result), indent=1, ensure_ascii=False))
    else:
        print(as_text(result))
    return 0 if result.verified else 1


def as_text(result: Verification) -> str:
    """What was compared, and what differs."""
    lines = [*result.differences, *(f"note: {note}" for note in result.notes)]
    rows = f"{result.rows:,} rows of {result.tensors} tensors"
    if result.differing_rows:
        rows += f", {result.differing_rows:,} of which differ"
    if result.verified and result.sample is None:
        lines.append(f"verified: {rows} agree in every value, {result.hashes} SHA-256 agree")
    elif result.verified:
        lines.append(
            f"verified by a sample: {rows} agree; with {result.confidence:.0%} confidence at most "
            f"{result.bound:.2g} of any tensor's rows differ; the SHA-256 were not checked"
        )
    else:
        lines.append(f"not verified: compared {rows}")
    return "\n".join(lines)


def record(result: Verification) -> Dict[str, Any]:
    """What --json prints; `semisync parity --verified` takes it as evidence."""
    return {"schema": SCHEMA, "verified": result.verified, **dataclasses.asdict(result)}
