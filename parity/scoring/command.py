"""`semisync score`: what a model gives for every row of a data set, as a Parquet file.

    semisync score DATA --saved-model DIR --key id --label y --out tensorflow.parquet
    semisync score DATA --checkpoint PREFIX --input user=user:0 --output logits:0 --out ...
    semisync score DATA --converted DIR --torch-model model.py:build --sparse user --out ...

Exit codes: 0 done, 3 bad input or usage; then no file is written.
"""

import argparse
import contextlib
import datetime
import fnmatch
import json
import os
import sys
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from parity.scoring.model import TYPES, Input
from semisync.errors import UsageError
from semisync.files import replacing


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = (
        "COL in --type and --fill may be a pattern such as 'C*'. Exit codes: 0 done, 3 bad input"
    )
    add = parser.add_argument
    add("data", metavar="DATA", help="a Parquet, ORC, CSV, TSV or TFRecord file, a folder, a glob")
    add("--out", metavar="FILE", required=True, help="the Parquet file to write")
    add("--key", metavar="COL", help="column that names a row; without it the rows are numbered")
    add("--label", metavar="COL", help="column of labels, 0 or 1")
    add("--keep", metavar="COL", nargs="+", default=[], help="columns to copy, such as the user")

    model = parser.add_argument_group("the model, one of")
    model.add_argument("--saved-model", metavar="DIR", help="a TensorFlow SavedModel")
    model.add_argument("--checkpoint", metavar="PREFIX", help="a TensorFlow checkpoint")
    model.add_argument(
        "--torch-model",
        metavar="CODE:NAME",
        help="a module, or a .py file, and its function that makes a torch model of --converted",
    )

    group = parser.add_argument_group("its inputs and its output")
    add = group.add_argument
    add(
        "--input",
        metavar="COL[=NAME]",
        action="append",
        default=[],
        help="feeds a column to the input or tensor NAME; without any, a SavedModel takes each of "
        "its inputs from the column of that name",
    )
    add(
        "--sparse",
        metavar="COL[=NAME]",
        action="append",
        default=[],
        help="the same for any number of values a row: a sparse input or tf.sparse_placeholder, a "
        "key of the KeyedJaggedTensor",
    )
    add("--examples", metavar="NAME", help="feed it the inputs as serialized tf.train.Examples")
    add("--output", metavar="NAME", help="the signature's output or the tensor that scores")
    add("--column", metavar="N", type=int, help="of an output with several a row, from 0")
    add("--sigmoid", action="store_true", help="the output is a logit; write its probability")
    add(
        "--feed",
        metavar="TENSOR=VALUE",
        action="append",
        default=[],
        help="a constant in JSON, such as is_training=false",
    )
    add(
        "--type",
        metavar="COL=TYPE",
        action="append",
        default=[],
        help=f"what a column is first turned into: {', '.join(TYPES)}",
    )
    add(
        "--fill",
        metavar="COL=VALUE",
        action="append",
        default=[],
        help="stands for a missing value; without it one ends the run, or is no value if --sparse",
    )
    add(
        "--list-separator",
        metavar="TEXT",
        default="|",
        help="between the values of a --sparse field in CSV or TSV (default: %(default)s)",
    )

    group = parser.add_argument_group("more of the model")
    add = group.add_argument
    add("--signature", default="serving_default", help="of the SavedModel (default: %(default)s)")
    add("--tags", default="serve", help="of the SavedModel, with commas (default: %(default)s)")
    add("--meta", metavar="FILE", help="the checkpoint's MetaGraph (default: PREFIX.meta)")
    add("--converted", metavar="DIR", help="what `semisync convert` wrote, for --torch-model")
    add(
        "--tf-python",
        metavar="PYTHON",
        default=sys.executable,
        help="an interpreter with TensorFlow 1.15 or 2.x (default: this one)",
    )
    add(
        "--tf-import",
        metavar="MODULE",
        action="append",
        default=[],
        help="import it before the model is opened, for its ops",
    )
    add(
        "--timeout",
        metavar="S",
        type=float,
        default=600.0,
        help="seconds for TensorFlow to open the model, or to score a batch (default: %(default)g)",
    )
    add(
        "--batch-size",
        metavar="N",
        type=int,
        default=4096,
        help="rows at a time (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Scores every row and writes the file."""
    _check(args)
    types = list(map(_type, _pairs(args.type, "--type")))
    fills = _pairs(args.fill, "--fill")
    with replacing(args.out) as beside, contextlib.ExitStack() as stack:
        from parity.scoring.output import ScoreFile

        sink = ScoreFile(str(beside), args.key, args.label, args.keep)
        stack.callback(sink.close)
        model = _open(args)
        stack.callback(model.close)
        files = _score(args, model, sink, types, fills)
        sink.finish(_about(args, model, files))
    of_them = f", {sink.positives:,} of them positive" if args.label else ""
    print(f"{sink.rows:,} rows{of_them}: {args.out}")
    return 0


def _score(
    args: argparse.Namespace,
    model: Any,
    sink: Any,
    types: Sequence[Tuple[str, str]],
    fills: Sequence[Tuple[str, str]],
) -> Dict[str, int]:
    """Feeds the sink; returns the rows of each file."""
    from parity.checks import Column
    from parity.scoring import data, scores
    from parity.scoring.features import feature

    wanted = [(one, _first(types, one.column), _first(fills, one.column)) for one in model.inputs]
    others = [name for name in (args.key, args.label, *args.keep) if name]
    columns = data.Columns(
        names=list(dict.fromkeys([*others, *(one.column for one in model.inputs)])),
        inferred={one.column for one, kind, _ in wanted if not (kind or one.dtype)}
        - {args.key, args.label},
        lists=_several(args, model),
        separator=args.list_separator,
    )
    files: Dict[str, int] = {}
    for batch in data.batches(args.data, columns, args.batch_size):
        rows = batch.table.num_rows
        features = [
            feature(
                batch.table[one.column],
                Column(one.column, batch.file, skipped=batch.skipped),
                one,
                kind,
                fill,
            )
            for one, kind, fill in wanted
        ]
        output = model.score(rows, features)
        sink.add(batch, scores.one_a_row(output, batch, args.column, args.sigmoid))
        files[batch.file] = batch.skipped + rows
        if sys.stderr.isatty():
            print(f"\r{sink.rows:,} rows, {batch.file}", end="\033[K", file=sys.stderr)
    return files


def _open(args: argparse.Namespace) -> Any:
    """The model, ready to score."""
    from parity.scoring import origins

    inputs = _inputs(args)
    if args.torch_model:
        from parity.scoring.in_torch import TorchModel

        return TorchModel(
            args.torch_model,
            args.converted,
            [
                Input(column, name, "int64" if sparse else None, sparse)
                for column, name, sparse in inputs
            ],
            origins.of_conversion(args.converted, args.torch_model),
        )
    from parity.scoring.in_tensorflow import TensorFlowModel

    spec = {
        "kind": "saved_model" if args.saved_model else "checkpoint",
        "path": args.saved_model or args.checkpoint,
        "tags": args.tags.split(","),
        "signature": args.signature,
        "meta": args.meta or f"{args.checkpoint}.meta",
        "modules": args.tf_import,
        "inputs": inputs,
        "examples": args.examples,
        "output": args.output,
        "feeds": dict(map(_constant, _pairs(args.feed, "--feed"))),
    }
    if args.saved_model:
        origin = origins.of_saved_model(args.saved_model)
    else:
        origin = origins.of_checkpoint(args.checkpoint, spec["meta"])
    return TensorFlowModel(args.tf_python, spec, origin, args.timeout)


def _inputs(args: argparse.Namespace) -> List[Tuple[str, str, bool]]:
    """(column, the model's name for it, whether it is sparse) of each --input and --sparse."""
    named = [(*text.partition("=")[::2], False) for text in args.input]
    named += [(*text.partition("=")[::2], True) for text in args.sparse]
    return [(column, name or column, sparse) for column, name, sparse in named]


def _several(args: argparse.Namespace, model: Any) -> Set[str]:
    """Columns whose fields in text files hold several values."""
    columns = {column for column, _, sparse in _inputs(args) if sparse}
    if not args.examples:  # there every input may have several
        columns |= {one.column for one in model.inputs if one.sparse}
    return columns


def _about(args: argparse.Namespace, model: Any, files: Dict[str, int]) -> Dict[str, Any]:
    """What the file's metadata says of how it came about."""
    from parity.tables import identify
    from parity.versions import versions

    return {
        "model": {
            **model.origin(),
            "inputs": [one._asdict() for one in model.inputs],
            "output": args.output,
            "sigmoid": args.sigmoid,
        },
        "data": [identify(file, rows)._asdict() for file, rows in files.items()],
        "versions": versions(),
        "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def _check(args: argparse.Namespace) -> None:
    """Refuses what has no meaning before anything is opened."""
    chosen = [args.saved_model, args.checkpoint, args.torch_model]
    if sum(one is not None for one in chosen) != 1:
        raise UsageError("give one model: --saved-model, --checkpoint or --torch-model")
    if (args.torch_model is None) != (args.converted is None):
        raise UsageError("--torch-model and --converted go together")
    if args.torch_model and (args.output or args.examples or args.feed):
        raise UsageError("--output, --examples and --feed are TensorFlow's; the code says it here")
    if args.checkpoint and not args.output:
        raise UsageError("--checkpoint needs --output, the tensor that scores")
    names = [name for _, name, _ in _inputs(args)]
    if not names and (args.examples or not args.saved_model):
        raise UsageError("name the model's inputs with --input and --sparse")
    written = [args.key or "row", *filter(None, [args.label]), *args.keep, "score"]
    for what, several in (("inputs", names), ("columns to write", written)):
        twice = sorted({name for name in several if several.count(name) > 1})
        if twice:
            raise UsageError(f"two of the {what} are called {twice[0]!r}")
    if args.torch_model and "sparse" in names:
        raise UsageError("an input cannot be called 'sparse', the sparse ones together are")
    if args.batch_size < 1 or not args.timeout > 0:
        raise UsageError("--batch-size is 1 or more, --timeout more than 0")
    if os.path.isdir(args.out):
        raise UsageError(f"{args.out} is a folder; --out names the file to write")


def _pairs(texts: Sequence[str], option: str) -> List[Tuple[str, str]]:
    """The two sides of each "A=B"."""
    for text in texts:
        if "=" not in text:
            raise UsageError(f"{option} takes NAME=VALUE, not {text!r}")
    return [text.partition("=")[::2] for text in texts]


def _first(pairs: Sequence[Tuple[str, str]], column: str) -> Optional[str]:
    """What the first pattern that fits the column says."""
    fits = (value for pattern, value in pairs if fnmatch.fnmatchcase(column, pattern))
    return next(fits, None)


def _type(pair: Tuple[str, str]) -> Tuple[str, str]:
    if pair[1] not in TYPES:
        raise UsageError(f"--type knows {', '.join(TYPES)}, not {pair[1]!r}")
    return pair


def _constant(pair: Tuple[str, str]) -> Tuple[str, Any]:
    try:
        return pair[0], json.loads(pair[1])
    except ValueError as error:
        raise UsageError(
            f"--feed {pair[0]} takes JSON, such as false, 0.5 or [1, 2], not {pair[1]!r}"
        ) from error
