"""The arguments of `semisync score`: their declarations, allowed combinations and values."""

import argparse
import os
from typing import Any

from migrate.scoring.model_files import graph_files
from migrate.scoring.options import add_inputs, add_tensorflow, named_inputs
from migrate.servers import add_plugins
from semisync.answers import add_json
from semisync.common.errors import UsageError
from semisync.common.files import check_writable

_EXAMPLES = """COL in --type and --fill may be a pattern such as 'C*'.

examples:
  semisync score rows.parquet --saved-model export --key id --label y --out tensorflow.parquet
  semisync score rows.parquet --checkpoint model.ckpt-1 --input user=user_id --output logits \\
    --sigmoid --key id --out tensorflow.parquet
  semisync score rows.parquet --converted converted --input user=user_id --sigmoid --key id \\
    --out torchrec.parquet"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    _add_data(parser)
    _add_model(parser.add_argument_group("the model, one of"))
    _add_inputs(parser.add_argument_group("its inputs and its output"))
    _add_more(parser.add_argument_group("more of the model"))
    add_json(parser, "the counts of rows")


def _add_data(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", metavar="DATA", help="a Parquet, ORC, CSV, TSV or TFRecord file, a folder, a glob")
    add("--out", metavar="FILE", required=True, help="the Parquet file to write")
    add("--key", metavar="COL", help="column that names a row; without it the rows are numbered")
    add("--label", metavar="COL", help="column of labels, 0 or 1")
    add("--keep", metavar="COL", nargs="+", default=[], help="columns to copy, such as the user")
    add(
        "--spark",
        metavar="MASTER",
        help="score on Spark's executors, which read DATA (Parquet, ORC) and the model's files; "
        "--out is a folder then, --tf-python theirs: local[4], spark://HOST:PORT, yarn, ...",
    )


def _add_model(group: Any) -> None:
    add = group.add_mutually_exclusive_group(required=True).add_argument
    add("--saved-model", metavar="DIR", help="a TensorFlow SavedModel")
    add(
        "--checkpoint",
        metavar="PREFIX",
        help="a TensorFlow checkpoint, or its directory; the file of a frozen graph",
    )
    add(
        "--converted",
        metavar="DIR",
        help="what `semisync convert --model` wrote: its model.py",
    )


def _add_inputs(group: Any) -> None:
    add = group.add_argument
    add_inputs(group)
    add("--examples", metavar="NAME", help="feed it the inputs as serialized tf.train.Examples")
    add("--output", metavar="NAME", help="the output, or the tensor of the graph, that scores")
    add("--column", metavar="N", type=int, help="of an output with several per row, from 0")
    add("--sigmoid", action="store_true", help="the output is a logit; write its probability, too")


def _add_more(group: Any) -> None:
    add = group.add_argument
    add("--signature", default="serving_default", help="of the SavedModel (default: %(default)s)")
    add("--tags", default="serve", help="of the SavedModel, with commas (default: %(default)s)")
    add("--meta", metavar="FILE", help="the checkpoint's MetaGraph (default: PREFIX.meta)")
    add_plugins(group)
    add(
        "--torch-model",
        metavar="CODE:NAME",
        help="with --converted, instead of its model.py: a module, or a .py file, and its function "
        "that makes a torch model of DIR",
    )
    add_tensorflow(group)
    add(
        "--batch-size",
        metavar="N",
        type=int,
        default=4096,
        help="rows at a time (default: %(default)s)",
    )


def check(args: argparse.Namespace) -> None:
    """Refuses meaningless arguments before anything is opened."""
    if args.torch_model and not args.converted:
        raise UsageError("--torch-model is given the directory of --converted; name one")
    if args.torch_model and (args.output or args.examples or args.feed):
        raise UsageError("with --torch-model the code says what --output, --examples, --feed would")
    if args.converted and args.examples:
        raise UsageError("--examples is TensorFlow's; model.py takes what is parsed out of them")
    named = [name for _, name, _ in named_inputs(args)]
    if args.checkpoint:
        found = graph_files(args.checkpoint, args.meta, args.output)
        args.checkpoint, args.meta = found
    if not named and (args.examples or args.torch_model):
        raise UsageError("name the model's inputs with --input and --sparse")
    written = [args.key or "row", *filter(None, [args.label]), *args.keep, "score"]
    written += ["logit"] if args.sigmoid else []
    for what, several in (("inputs", named), ("columns to write", written)):
        twice = sorted({name for name in several if several.count(name) > 1})
        if twice:
            raise UsageError(f"two of the {what} are called {twice[0]!r}")
    if args.torch_model and "sparse" in named:
        raise UsageError(
            "an input cannot be called 'sparse': the sparse ones together are called that"
        )
    if args.batch_size < 1 or not args.timeout > 0:
        raise UsageError("--batch-size is 1 or more, --timeout more than 0")
    if args.spark:
        _check_spark(args)
        return
    if os.path.isdir(args.out):
        raise UsageError(f"{args.out} is a folder; --out names the file to write")
    if not os.path.isdir(os.path.dirname(args.out) or "."):
        raise UsageError(f"there is no folder {os.path.dirname(args.out)} for --out; make it first")
    check_writable(args.out)


def _check_spark(args: argparse.Namespace) -> None:
    """Refuses options that executors do not support, and an existing --out."""
    if args.torch_model:
        raise UsageError("--torch-model scores on one machine; without it --spark takes model.py")
    if args.text is not None:
        raise UsageError("--text does not go with --spark, which reads Parquet and ORC")
    if args.key is None:
        raise UsageError("--spark needs --key, as the rows of a DataFrame have no numbers")
    if os.path.exists(args.out):
        raise UsageError(f"{args.out} exists; with --spark --out names a folder to write")
