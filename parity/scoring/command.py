"""`semisync score`: a model's score for every row of a data set, as a Parquet file.

    semisync score DATA --saved-model DIR --key id --label y --out tensorflow.parquet
    semisync score DATA --checkpoint PREFIX --input user=user:0 --output logits:0 --out ...
    semisync score DATA --converted DIR --torch-model model.py:build --sparse user --out ...

Where it does not end with exit code 0, no file is written.
"""

import argparse
import contextlib
import fnmatch
import sys
from typing import Any, Dict, Optional, Sequence, Set, Tuple

from parity.scoring.arguments import check, configure, constant, inputs, pairs, typed
from parity.scoring.model import Input
from semisync.common.files import replacing

__all__ = ["configure", "run"]


def run(args: argparse.Namespace) -> int:
    """Scores every row and writes the file."""
    check(args)
    types = list(map(typed, pairs(args.type, "--type")))
    fills = pairs(args.fill, "--fill")
    with replacing(args.out) as beside, contextlib.ExitStack() as stack:
        from parity.scoring.output import ScoreFile

        sink = ScoreFile(str(beside), args.key, args.label, args.keep)
        stack.callback(sink.close)
        model = _open(args)
        stack.callback(model.close)
        files, instability = _score(args, model, sink, types, fills)
        sink.finish(_about(args, model, files, instability))
    if instability is not None:
        print(f"semisync score: warning: {instability.in_words()}", file=sys.stderr)
    positives = f", {sink.positives:,} of them positive" if args.label else ""
    print(f"{sink.rows:,} rows{positives}: {args.out}")
    return 0


def _score(
    args: argparse.Namespace,
    model: Any,
    sink: Any,
    types: Sequence[Tuple[str, str]],
    fills: Sequence[Tuple[str, str]],
) -> Tuple[Dict[str, int], Any]:
    """Feeds the sink; returns the rows per file, and what else than its row a score depends on."""
    from parity.inputs.checks import Column
    from parity.scoring import data
    from parity.scoring.features import feature
    from parity.scoring.scores import find_instability, scorer, written

    wanted = [
        (taken, _first(types, taken.column), _first(fills, taken.column)) for taken in model.inputs
    ]
    others = [name for name in (args.key, args.label, *args.keep) if name]
    columns = data.Columns(
        names=list(dict.fromkeys([*others, *(taken.column for taken in model.inputs)])),
        inferred={taken.column for taken, kind, _ in wanted if not (kind or taken.dtype)}
        - {args.key, args.label},
        lists=_several(args, model),
        separator=args.list_separator,
    )
    files: Dict[str, int] = {}
    instability, looked_for = None, False
    for batch in data.batches(args.data, columns, min(args.batch_size, model.batch or sys.maxsize)):
        rows = batch.table.num_rows
        features = [
            feature(
                batch.table[taken.column],
                Column(taken.column, batch.file, skipped=batch.skipped),
                taken,
                kind,
                fill,
            )
            for taken, kind, fill in wanted
        ]
        score = scorer(model, batch, features, args.column)
        scores = score(0, rows)
        if rows > 1 and not looked_for:
            instability, looked_for = find_instability(scores, score), True
        sink.add(batch, written(scores, args.sigmoid))
        files[batch.file] = batch.skipped + rows
        if sys.stderr.isatty():
            print(f"\r{sink.rows:,} rows, {batch.file}", end="\033[K", file=sys.stderr)
    return files, instability


def _open(args: argparse.Namespace) -> Any:
    """The model, ready to score."""
    from parity.scoring import model_files

    named = inputs(args)
    if args.torch_model:
        from parity.scoring.in_torch import TorchModel

        return TorchModel(
            args.torch_model,
            args.converted,
            [
                Input(column, name, "int64" if sparse else None, sparse)
                for column, name, sparse in named
            ],
            model_files.of_conversion(args.converted, args.torch_model),
        )
    from parity.scoring.in_tensorflow import TensorFlowModel

    spec = {
        "kind": "saved_model" if args.saved_model else "checkpoint",
        "path": args.saved_model or args.checkpoint,
        "tags": args.tags.split(","),
        "signature": args.signature,
        "meta": args.meta,
        "modules": args.tf_import,
        "inputs": named,
        "examples": args.examples,
        "output": args.output,
        "feeds": dict(map(constant, pairs(args.feed, "--feed"))),
    }
    if args.saved_model:
        origin = model_files.of_saved_model(args.saved_model)
    else:
        origin = model_files.of_checkpoint(args.checkpoint, spec["meta"])
    return TensorFlowModel(args.tf_python, spec, origin, args.timeout)


def _several(args: argparse.Namespace, model: Any) -> Set[str]:
    """The columns of text files whose fields hold several values."""
    columns = {column for column, _, sparse in inputs(args) if sparse}
    if not args.examples:  # there every input may have several
        columns |= {taken.column for taken in model.inputs if taken.sparse}
    return columns


def _about(
    args: argparse.Namespace, model: Any, files: Dict[str, int], instability: Any
) -> Dict[str, Any]:
    """What the file's metadata says about its making."""
    from parity.io.identity import identify
    from parity.provenance import stamp

    return {
        "model": {
            **model.origin(),
            "inputs": [taken._asdict() for taken in model.inputs],
            "output": args.output,
            "sigmoid": args.sigmoid,
            "instability": None if instability is None else instability.to_json(),
        },
        "data": [identify(file, rows)._asdict() for file, rows in files.items()],
        **stamp(),
    }


def _first(pairs: Sequence[Tuple[str, str]], column: str) -> Optional[str]:
    """The value of the first pattern that fits the column."""
    fits = (value for pattern, value in pairs if fnmatch.fnmatchcase(column, pattern))
    return next(fits, None)
