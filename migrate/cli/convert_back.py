"""`semisync convert --to-tensorflow FROM PREFIX`: the way back."""

from __future__ import annotations

import argparse
from typing import List

from migrate.cli.convert_output import of_returned
from migrate.to_tensorflow.api import write_checkpoint
from migrate.to_tensorflow.write import Returned
from semisync.answers import answer
from semisync.common.progress import ByteProgress
from semisync.common.sentences import some_of


def run(args: argparse.Namespace) -> int:
    """Writes the checkpoint and reports its contents; returns 0."""
    with ByteProgress() as progress:
        written = write_checkpoint(
            args.prefix,
            args.out,
            args.original,
            args.converted,
            meta=args.meta,
            assets=args.asset,
            overwrite=args.overwrite,
            latest=args.latest,
            progress=progress,
        )
    answer(args.json, of_returned(written), lines_of(written, args.original))
    return 0


def lines_of(written: Returned, original: str) -> List[str]:
    """The tensors written, and those of them from the original."""
    files = f"{written.shards} data file{'s' if written.shards > 1 else ''}"
    lines = [
        f"wrote {written.tensors} tensors, {written.nbytes:,} bytes, to {written.prefix} ({files})"
    ]
    if written.copied:
        lines.append(f"  copied from {original}: {some_of(written.copied, most=10)}")
    return [*lines, *(f"  note: {note}" for note in written.notes)]
