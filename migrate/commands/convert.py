"""`semisync convert PREFIX OUT`: plan, convert, and say what was written."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from typing import Optional, Tuple

from migrate import ranks
from migrate.conversion import convert
from migrate.ids.modes import DUPLICATES, MODES
from migrate.manifest import Manifest
from migrate.planning import plan
from migrate.plans import CASTS, STATICS, STRATEGIES, Plan
from migrate.sources.bundle import Checkpoint, open_checkpoint
from migrate.sources.increment import Overlaid
from migrate.static import savings
from migrate.targets import TARGETS
from migrate.targets.staging import refuse_existing
from semisync.errors import BadInput, UsageError

_QUIET_SECONDS = 2.0  # a conversion that is over by then shows no progress


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("prefix", metavar="PREFIX", help="path of the checkpoint, without .index")
    parser.add_argument("out", metavar="OUT", help="directory to write; a new or an empty one")
    parser.add_argument(
        "--newer", metavar="PREFIX", help="a DeepRec incremental checkpoint to lay over it"
    )
    parser.add_argument("--meta", metavar="FILE", help="the MetaGraph; default PREFIX.meta")
    parser.add_argument(
        "--plan", metavar="FILE", help="a plan to carry out, as --dry-run prints it"
    )
    parser.add_argument(
        "--tables", metavar="REGEX", help="variables that are tables; default: those looked up"
    )
    parser.add_argument(
        "--partition-strategy",
        choices=STRATEGIES,
        help="how ids were dealt to partitions, where the MetaGraph does not tell",
    )
    parser.add_argument(
        "--rename",
        metavar="REGEX=NAME",
        action="append",
        default=[],
        help="rename tables and dense variables, as re.sub does; may be repeated",
    )
    parser.add_argument("--cast", choices=CASTS, help="data type of the tables in the target")
    parser.add_argument(
        "--static",
        metavar="REGEX[=TYPE]",
        action="append",
        default=[],
        help="tables that are trained no more: frozen, in fp16 (the default), int8 or float32, "
        "without optimizer state; may be repeated",
    )
    parser.add_argument("--drop", metavar="REGEX", help="tensors to leave out")
    parser.add_argument(
        "--ids", choices=list(MODES), help="how hash tables find the row of an id; default rows"
    )
    parser.add_argument(
        "--duplicates",
        choices=DUPLICATES,
        help="an id in two partitions of a hash table; default error",
    )
    parser.add_argument("--target", choices=TARGETS, default="dcp", help="format; default dcp")
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="threads that read, write and compare; default one a processor, at most four, and "
        "eight for a URL",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with a conversion that was interrupted"
    )
    parser.add_argument(
        "--no-verify", action="store_true", help="do not read and compare both sides at the end"
    )
    parser.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        default=ranks.DEADLINE,
        help="with several ranks (torchrun): how long to wait for a sign of the others; "
        "default %(default)g",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan, write nothing")


def run(args: argparse.Namespace) -> int:
    """Converts, or prints the plan; returns 0."""
    rank = ranks.from_environment(args.deadline)
    if rank.number and not args.dry_run:
        parts = ranks.assist(args.out, rank, args.workers)
        print(f"rank {rank.number} of {rank.size} wrote {parts} parts")
        return 0
    if not args.dry_run:
        refuse_existing(args.out)  # before the reading, which may take long
    with open_checkpoint(args.prefix, newer=args.newer) as checkpoint:
        chosen = _plan(args, checkpoint)
    if args.dry_run:
        print(chosen.to_yaml(), end="")
        return 0
    print(_summary(chosen))
    progress = _Progress()
    try:
        manifest = convert(
            chosen,
            args.out,
            args.target,
            progress=progress,
            workers=args.workers,
            resume=args.resume,
            verify=not args.no_verify,
            rank=rank,
        )
    except KeyboardInterrupt:
        print("\nsemisync convert: interrupted; go on with --resume", file=sys.stderr)
        raise
    finally:
        progress.end()
    print(_written(manifest, chosen, args.out, verified=not args.no_verify))
    return 0


def _plan(args: argparse.Namespace, checkpoint: Checkpoint) -> Plan:
    """The plan that the arguments ask for; a plan from a file is carried out on PREFIX."""
    if args.plan is None:
        return plan(
            checkpoint,
            args.meta,
            args.tables,
            args.partition_strategy,
            rename=[_substitution(one) for one in args.rename],
            cast=args.cast,
            drop=args.drop,
            static=[_mark(one) for one in args.static],
            ids=args.ids or "rows",
            duplicates=args.duplicates or "error",
        )
    options = (args.meta, args.tables, args.partition_strategy, args.rename, args.cast, args.drop)
    if any((*options, args.static, args.ids, args.duplicates)):
        raise UsageError(
            "--plan already says what --meta, --tables, --partition-strategy, --rename, --cast, "
            "--static, --drop, --ids and --duplicates would; leave them out or edit the plan"
        )
    try:
        with open(args.plan, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{args.plan} cannot be read: {error}") from error
    found = Plan.from_yaml(text, args.plan)
    newer = checkpoint.newer.prefix if isinstance(checkpoint, Overlaid) else found.newer
    return dataclasses.replace(found, source=checkpoint.prefix, newer=newer)


def _substitution(text: str) -> Tuple[str, str]:
    pattern, equals, name = text.rpartition("=")
    if not equals:
        raise UsageError(f"--rename {text}: expected REGEX=NAME")
    return pattern, name


def _mark(text: str) -> Tuple[str, str]:
    """REGEX and a type; a regular expression may have an = of its own."""
    pattern, _, kind = text.rpartition("=")
    return (pattern, kind) if kind in STATICS and pattern else (text, "fp16")


def _summary(chosen: Plan) -> str:
    tables = len(chosen.tables) + len(chosen.hash_tables)
    lines = [f"{chosen.source}: {tables} tables, {len(chosen.dense)} dense variables"]
    for table in chosen.tables:
        parts = f", {table.partitions} partitions ({table.partition_strategy})"
        lines.append(
            f"  table {table.name}: {table.rows} x {table.dim} {table.dtype}"
            + (parts if table.partitions > 1 else "")
            + (f", {table.optimizer}" if table.optimizer else "")
            + (f", static {table.static}" if table.static else "")
        )
    for one in chosen.hash_tables:
        lines.append(
            f"  hash table {one.name}: {one.stored} x {one.dim} {one.dtype}, {one.kind}, "
            f"ids by {one.ids}"
            + (f", {one.optimizer}" if one.optimizer else "")
            + (f", static {one.static}" if one.static else "")
        )
    lines += [f"  dropped {name}: {reason}" for name, reason in chosen.dropped.items()]
    lines += [f"  note: {note}" for note in chosen.notes]
    return "\n".join(lines)


def _written(manifest: Manifest, chosen: Plan, out: str, verified: bool) -> str:
    lines = [
        f"wrote {len(manifest.tensors)} tensors to {out} ({manifest.target}, manifest.json)"
        + (", verified" if verified else ", not verified")
    ]
    for one in manifest.tensors:
        if one.loss is not None:
            lines.append(
                f"  {one.fqn} cast to {'int8' if one.transform == 'int8' else one.dtype}: relative "
                f"error {one.loss.relative:.2g}, rms {one.loss.root_mean_square:.2g}, largest "
                f"{one.loss.largest:.2g}, {one.loss.vanished} values became zero"
            )
    lines += [f"  {savings(table)}" for table in manifest.tables if table.static]
    lines += [f"  note: {note}" for note in manifest.notes if note not in chosen.notes]
    return "\n".join(lines)


class _Progress:
    """One line on stderr, rewritten once a second, only where the work takes long."""

    def __init__(self) -> None:
        self._start: Optional[float] = None
        self._next = 0.0
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._start is None:
            self._start, self._next = now, now + _QUIET_SECONDS
        if now < self._next:
            return
        self._next = now + 1
        self._shown = True
        speed = done / (now - self._start) / 1e6
        line = f"\r{done / 1e6:,.0f} of {total / 1e6:,.0f} MB, {speed:,.0f} MB/s"
        print(line, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Ends the line, where one was begun."""
        if self._shown:
            print(file=sys.stderr)
