"""The arguments of `semisync convert`, and the plan that they ask for."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Dict, Optional, Sequence, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.cli.tensors import add_tensors, tensors
from migrate.launcher import DEADLINE
from migrate.manifest.id_modes import DUPLICATES, MODES
from migrate.model.vocabulary_files import add_assets
from migrate.planning.plan import CASTS, STATICS, Plan
from migrate.planning.planner import plan
from migrate.servers import add_plugins
from migrate.targets import TARGETS
from semisync.answers import add_json
from semisync.common.errors import UsageError
from semisync.common.files import read_text

_EXAMPLES = """examples:
  semisync convert model.ckpt-1 converted
  semisync convert model.ckpt-1 converted --model
  semisync convert frozen.pb converted --model
  semisync convert s3://bucket/model.ckpt-1 s3://bucket/converted
  semisync convert model.ckpt-1 converted --model --input age=deep/Log:0 --output logits
  semisync convert model.ckpt-1 converted --dry-run > plan.yaml
  semisync convert model.ckpt-1 converted --plan plan.yaml --target safetensors
  semisync convert --to-tensorflow converted back.ckpt-1 --original model.ckpt-1"""

_SHARED = ("prefix", "out", "to_tensorflow", "meta", "asset", "json")  # options of both ways
_BACK = ("original", "converted", "overwrite", "latest")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "prefix",
        metavar="PREFIX",
        help="a checkpoint without .index, or its directory; a SavedModel's directory; with "
        "--model the file of a frozen graph",
    )
    parser.add_argument(
        "out", metavar="OUT", help="directory to write, or a URL; a new or empty one"
    )
    parser.add_argument(
        "--newer", metavar="PREFIX", help="a DeepRec incremental checkpoint to lay over it"
    )
    parser.add_argument(
        "--meta",
        metavar="FILE",
        help="the MetaGraph, .meta or saved_model.pb; default PREFIX.meta or the SavedModel's own",
    )
    add_plugins(parser)
    _configure_plan(parser.add_argument_group("what each tensor becomes"))
    _configure_ids(parser.add_argument_group("hash tables"))
    _configure_model(parser.add_argument_group("the model around the tables"))
    _configure_work(parser.add_argument_group("the work"))
    _configure_back(parser.add_argument_group("the way back"))
    add_json(parser, "the plan of --dry-run, or the manifest and what model.py has,")


def _configure_plan(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--plan", metavar="FILE", help="convert by this plan, in the form that --dry-run prints"
    )
    group.add_argument("--dry-run", action="store_true", help="print the plan, write nothing")
    add_tensors(group)
    group.add_argument("--cast", choices=CASTS, help="data type of the tables in the target")
    group.add_argument(
        "--static",
        metavar="REGEX[=TYPE]",
        action="append",
        default=[],
        help="tables that are no longer trained: frozen, in fp16 (the default), int8 or float32, "
        "without optimizer state; may be repeated",
    )


def _configure_ids(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--ids", choices=list(MODES), help="how hash tables find the row of an id; default rows"
    )
    group.add_argument(
        "--duplicates",
        choices=DUPLICATES,
        help="an id in two partitions of a hash table; default error",
    )


def _configure_model(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model",
        action="store_true",
        help="write model.py too: the graph as a torch module that takes the raw features",
    )
    group.add_argument(
        "--input",
        metavar="NAME[=TENSOR]",
        action="append",
        help="with --model: what the module takes, called NAME: an input of the graph, any tensor, "
        "or with commas the indices, values and shape of a sparse one; may be repeated, and there "
        "are no others then; default: what the graph is fed",
    )
    group.add_argument(
        "--output",
        metavar="TENSOR",
        action="append",
        help="with --model: what the module returns; may be repeated; default: the signature's "
        "outputs, or what the loss is given",
    )
    add_assets(group)


def _configure_work(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--target", choices=TARGETS, default="dcp", help="format; default dcp")
    group.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="threads that read, write and compare; default one per CPU, at most four, and "
        "eight for a URL",
    )
    group.add_argument(
        "--resume", action="store_true", help="go on with a conversion that was interrupted"
    )
    group.add_argument(
        "--scratch",
        metavar="DIR",
        help="with a URL as OUT: folder for the job and the files that are not uploaded yet, some "
        "of 64 MiB at a time, the same for all ranks; default the current directory",
    )
    group.add_argument(
        "--no-verify", action="store_true", help="do not read and compare both sides at the end"
    )
    group.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        default=DEADLINE,
        help="with several ranks (torchrun): how long to wait for the others to make progress; "
        "default %(default)g",
    )


def _configure_back(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--to-tensorflow",
        action="store_true",
        help="write a TensorFlow checkpoint: PREFIX is a directory that was converted, or a DCP "
        "that training saved after a conversion; OUT is the prefix to write",
    )
    group.add_argument(
        "--original",
        metavar="PREFIX",
        help="the checkpoint that was converted: what torch does not have is copied from it",
    )
    group.add_argument(
        "--converted", metavar="DIR", help="of a DCP: the conversion from which its training began"
    )
    group.add_argument(
        "--overwrite", action="store_true", help="replace the checkpoint that is there"
    )
    group.add_argument(
        "--latest",
        action="store_true",
        help="also write the file `checkpoint`, which names OUT as the latest of its directory",
    )


def check_way(args: argparse.Namespace) -> None:
    """Raises UsageError if options of the one way are given with the other."""
    parser = argparse.ArgumentParser()
    configure(parser)
    for name, value in sorted(vars(args).items()):
        # argparse does not say whether an option was given: one at its default counts as not given.
        if name in _SHARED or value == parser.get_default(name):
            continue
        if args.to_tensorflow != (name in _BACK):
            goes = "does not go" if args.to_tensorflow else "goes only"
            raise UsageError(f"--{name.replace('_', '-')} {goes} with --to-tensorflow")


def named_inputs(texts: Optional[Sequence[str]]) -> Dict[str, str]:
    """{name: its source} of each --input; raises UsageError for a name that is given twice."""
    pairs = [text.partition("=")[::2] for text in texts or ()]
    named = {name: what or name for name, what in pairs}
    twice = [name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1]
    if twice:
        raise UsageError(f"--input names {twice[0]!r} twice")
    return named


def planned(args: argparse.Namespace, checkpoint: Checkpoint) -> Plan:
    """The plan that the arguments ask for; a plan from a file is carried out on PREFIX."""
    if args.plan is None:
        return plan(
            checkpoint,
            args.meta,
            **tensors(args),
            cast=args.cast,
            static=[_mark(text) for text in args.static],
            ids=args.ids or "rows",
            duplicates=args.duplicates or "error",
        )
    options = (args.meta, args.partition_strategy, args.rename, args.cast, args.drop)
    if args.tables is not None or any((*options, args.static, args.ids, args.duplicates)):
        raise UsageError(
            "--plan already says what --meta, --tables, --partition-strategy, --rename, --cast, "
            "--static, --drop, --ids and --duplicates would; leave them out or edit the plan"
        )
    edited = Plan.from_yaml(read_text(args.plan), args.plan)
    # --newer goes before the plan's own, as PREFIX does.
    newer = checkpoint.newer.prefix if checkpoint.newer is not None else edited.newer
    return dataclasses.replace(edited, source=checkpoint.prefix, newer=newer)


def _mark(text: str) -> Tuple[str, str]:
    """REGEX and a type; a regular expression may have an = of its own."""
    pattern, _, kind = text.rpartition("=")
    return (pattern, kind) if kind in STATICS and pattern else (text, "fp16")
