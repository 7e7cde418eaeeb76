"""`semisync sequence`: trains a model of users' sequences, measures it, writes its vectors.

train CONFIG.yaml    files to a folder, in any number of processes
evaluate MODEL       the ranks of validation or test among all items
export MODEL         vectors by raw id, and each user's best items, as Parquet
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Dict, List

from semisync.answers import add_json, answer
from semisync.commands.train import add_device, add_processes, positive, quieten
from semisync.common.files import check_writable, write_text
from semisync.common.terminal import say

if TYPE_CHECKING:
    from migrate.sequences.histories import Columns

TRAINED = "semisync.sequence-train/1"
EVALUATED = "semisync.sequence-evaluate/1"
EXPORTED = "semisync.sequence-export/1"
_DEADLINE = 600  # seconds that a process of `evaluate` waits for the others

_EXAMPLES = """examples:
  semisync sequence train hstu.yaml --data 'log/*.parquet' --out model --nproc 2
  semisync sequence evaluate model --data 'log/*.parquet' --part test
  semisync sequence export model --data 'log/*.parquet' --out vectors --top 100 --without-seen"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    verbs = parser.add_subparsers(dest="verb", metavar="train|evaluate|export", required=True)
    verb = verbs.add_parser
    _configure_train(verb("train", help="train a model on users' histories"))
    _configure_evaluate(verb("evaluate", help="measure it: HR@K, NDCG@K, MRR"))
    _configure_export(verb("export", help="write vectors and best items as Parquet"))


def _configure_train(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("config", metavar="CONFIG", help="the settings, as YAML")
    _add_data(parser)
    add("--out", metavar="DIR", required=True, help="checkpoints and log go there")
    add("--resume", action="store_true", help="go on from the newest checkpoint of DIR, if any")
    add(
        "--checkpoint-every",
        metavar="N",
        type=positive,
        default=1000,
        help="steps; an epoch ends with one too (%(default)s)",
    )
    add("--report-every", metavar="N", type=positive, default=100, help="steps (%(default)s)")
    add_json(parser, "the last step and its figures")
    add_processes(parser.add_argument_group("processes"))


def _configure_evaluate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="a folder of `train`")
    _add_data(parser)
    add("--part", choices=("validation", "test"), default="test", help="(%(default)s)")
    add("--out", metavar="FILE", help="write the figures there, as JSON")
    add_json(parser, "the figures")
    add("--scores", metavar="FILE", help="write labels and logits of a ranking there, as Parquet")
    add(
        "--at",
        metavar="WHEN",
        nargs="+",
        default=[],
        help="when a model with buckets is asked: next, the time of the event to predict; last, "
        "that of the last event; +N after it; or a time (next last)",
    )
    add_device(parser)


def _configure_export(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="a folder of `train`")
    _add_data(parser)
    add("--out", metavar="DIR", required=True, help="the files go there")
    add("--top", metavar="K", type=positive, help="write the K best items for each user too")
    add_json(parser, "how many items and users were written")
    add(
        "--without-seen",
        action="store_true",
        help="leave out of these the items that the user has already seen",
    )
    add(
        "--part-size",
        metavar="N",
        type=positive,
        default=1 << 16,
        help="users or items of a file (%(default)s)",
    )
    add(
        "--at",
        metavar="WHEN",
        help="when a model with buckets is asked: last, the time of a user's last event; +N after "
        "it; or a time (last)",
    )
    add_device(parser)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="PATH", nargs="+", required=True, help="files, folders or patterns"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the verb; returns 0."""
    if args.out is not None:
        check_writable(args.out)
    verbs = {"train": _train, "evaluate": _evaluate, "export": _export}
    return verbs[args.verb](args)


def _train(args: argparse.Namespace) -> int:
    from migrate.runtime.serving.memory import keep_freed_memory
    from migrate.sequences.training.run import train
    from migrate.sequences.training.settings import read_settings
    from migrate.training.checkpoints import refuse_existing
    from migrate.training.distributed.processes import (
        is_to_launch,
        joined,
        launch,
        rank,
        use_threads,
    )

    settings = read_settings(args.config)
    refuse_existing(args.out, args.resume)
    if is_to_launch(args.nproc):
        return launch(_arguments(args), args.nproc, args.max_restarts)
    quieten()
    use_threads(args.threads)
    keep_freed_memory()
    with joined(args.deadline, args.device) as device:
        if rank() == 0:
            _tell_order(settings.data, args.data)
        every = args.checkpoint_every, args.report_every
        done = train(settings, args.data, args.out, args.resume, *every, device)
        if rank() == 0:
            document = {"schema": TRAINED, "out": args.out, "step": done.step}
            answer(args.json, document, [f"trained up to step {done.step:,}: {args.out}"])
    return 0


def _arguments(args: argparse.Namespace) -> List[str]:
    """Each process's options; one that is restarted resumes."""
    every = [str(args.checkpoint_every), "--report-every", str(args.report_every)]
    given = ["sequence", "train", args.config, "--out", args.out, "--resume", "--data", *args.data]
    where = ["--device", args.device, "--deadline", str(args.deadline)]
    threads = [] if args.threads is None else ["--threads", str(args.threads)]
    return [*given, *where, *threads, *["--json"] * args.json, "--checkpoint-every", *every]


def _evaluate(args: argparse.Namespace) -> int:
    from migrate.sequences.training.run import evaluate, open_trained
    from migrate.training.distributed.processes import joined, rank

    quieten()
    if args.scores is not None:
        check_writable(args.scores)
    with joined(_DEADLINE, args.device) as device:
        trained = open_trained(args.model, device)
        if rank() == 0:
            _tell_order(trained.settings.data, args.data)
        found = evaluate(trained, args.data, args.part, args.scores, args.at)
        if rank() == 0:
            _tell(found, args)
    return 0


def _tell(found: Dict[str, Any], args: argparse.Namespace) -> None:
    from migrate.sequences.training.run import tell_moments

    _tell_unknown(found["unknown"])
    tell_moments(found["at one time"])
    lines = [f"{args.part}: {found['users']:,} users"]
    for name in (name for name, figures in found.items() if isinstance(figures, dict)):
        figures: Dict[str, Any] = found[name]
        known = [f"{one} {value:.4f}" for one, value in figures.items() if value is not None]
        lines.append(f"{name}: {', '.join(known)}")
    document = {"schema": EVALUATED, **found}
    if args.out is not None:
        write_text(args.out, json.dumps(document, indent=1) + "\n")
    answer(args.json, document, lines)


def _export(args: argparse.Namespace) -> int:
    from migrate.sequences.export import asking_of, export
    from migrate.sequences.training.run import known, open_trained
    from migrate.training.distributed.devices import device_of

    quieten()
    trained = open_trained(args.model, device_of(args.device))
    _tell_order(trained.settings.data, args.data)
    histories, unknown = known(trained, args.data)
    _tell_unknown(unknown)
    asking = asking_of(trained, args.at)
    export(trained, histories, args.out, args.top or 0, args.without_seen, args.part_size, asking)
    items, users, when = len(trained.catalog), len(histories.users), asking and str(asking)
    document = {"schema": EXPORTED, "out": args.out, "items": items, "users": users}
    document.update({"asked": when, "unknown": unknown})
    said = f"{items:,} items, {users:,} users{' ' + when if when else ''}: {args.out}"
    answer(args.json, document, [said])
    return 0


def _tell_order(columns: Columns, data: List[str]) -> None:
    """Warns that the files are in another order than named, where that is the order of time."""
    from migrate.data.listing import other_order

    written = columns.text is not None or columns.form == "lines"
    order = other_order(data, written) if columns.time is None else None
    if order is not None:
        say(f"{order}, and so are the events, which have no time")


def _tell_unknown(share: float) -> None:
    if share:
        say(f"left out: {share:.2%} of the events, of items that the model does not know")
