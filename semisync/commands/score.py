"""`semisync score`: a model's score for every row of a data set, as a Parquet file.

    semisync score DATA --saved-model DIR --key id --label y --out tensorflow.parquet
    semisync score DATA --checkpoint PREFIX --input user=user:0 --output logits:0 --out ...
    semisync score DATA --converted DIR --key id --label y --out torchrec.parquet
    semisync score DATA --saved-model DIR --key id --label y --out tensorflow --spark yarn

If it does not end with exit code 0, no file is written.
"""

import argparse
import contextlib
from typing import Any, Dict, List

from migrate.scoring.arguments import check, configure
from migrate.scoring.chosen import chosen, open_model, origin_of
from migrate.scoring.document import document
from migrate.scoring.options import Given, given
from semisync.answers import answer
from semisync.common.terminal import live, say

__all__ = ["configure", "run"]


def run(args: argparse.Namespace) -> int:
    """Scores every row and writes the file."""
    check(args)
    said = given(args)
    if args.spark:
        from migrate.scoring.on_spark import score_files

        return score_files(args, said)
    from migrate.scoring.run import Reading, Writing, score

    with contextlib.ExitStack() as stack:
        which, asked = chosen(args), said.asked(args.output)
        model = open_model(which, asked, origin_of(which, asked))
        stack.callback(model.close)
        several = _several(args, said, model)
        reading = Reading(said.types, said.fills, several, said.text, args.batch_size)
        writing = Writing(args.key, args.label, args.keep, args.column, args.sigmoid)
        scored = score(model, args.data, args.out, reading, writing, _show)
    if scored.instability is not None:
        say(f"semisync score: warning: {scored.instability.in_words()}", error=True)
    unknown: Dict[str, float] = getattr(model, "unknown_ids", dict)()
    for table, share in unknown.items():
        say(
            f"semisync score: note: {table} lacks {share:.2%} of the ids that were looked up; they "
            "got what the graph gives new ids",
            error=True,
        )
    positives = f", {scored.positives:,} of them positive" if args.label else ""
    counted = scored.positives if args.label else None
    told = document(args.out, scored.rows, scored.instability, counted, unknown)
    answer(args.json, told, [f"{scored.rows:,} rows{positives}: {args.out}"])
    return 0


def _show(rows: int, file: str) -> None:
    live(f"{rows:,} rows, {file}")


def _several(args: argparse.Namespace, said: Given, model: Any) -> List[str]:
    """The columns of text files whose fields hold several values."""
    columns = [column for column, _, sparse in said.named if sparse]
    if not args.examples:  # with Examples every input may have several
        columns += [taken.column for taken in model.inputs if taken.several]
    return columns
