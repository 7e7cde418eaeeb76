"""`semisync convert PREFIX OUT`: plan, convert, and report the result.

With --model the source of the model is made first, so that an op that is not known ends the work
before it begins. Of a frozen graph that is all: there are no variables to convert, and no manifest
of them. With --to-tensorflow it is the way back.
"""

from __future__ import annotations

import argparse
import os
from typing import List, Optional

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.cli.convert_arguments import check_way, configure, named_inputs, planned
from migrate.cli.convert_output import (
    of_conversion,
    of_dry_run,
    of_forecast,
    of_frozen,
    of_manifest,
    of_model,
    of_plan,
    of_rank,
    of_returned,
)
from migrate.conversion import ranks
from migrate.conversion.convert import convert
from migrate.conversion.forecast import forecast
from migrate.launcher import from_environment
from migrate.model.load import SOURCE, Written, read_meta_graph, write_model, write_source
from migrate.model.outputs import find_outputs
from migrate.open import frozen_graph, open_checkpoint, open_model
from migrate.targets.work_directory import refuse_existing, work_directory
from migrate.to_tensorflow.api import write_checkpoint
from migrate.to_tensorflow.write import Returned
from semisync.answers import answer
from semisync.common.errors import UsageError
from semisync.common.files import check_writable
from semisync.common.progress import ByteProgress
from semisync.common.sentences import some_of
from semisync.common.terminal import say
from semisync.storage.remote import is_remote

# The options that have no meaning for a frozen graph, which has no variables.
_OF_VARIABLES = (
    "cast drop duplicates ids meta newer partition_strategy plan rename resume static tables"
)
__all__ = ["configure", "run"]


def run(args: argparse.Namespace) -> int:
    """Converts, or prints the plan; returns 0."""
    check_way(args)
    if args.to_tensorflow:
        return _write_back(args)
    rank = from_environment(args.deadline)
    # Every other rank writes its share; rank 0 plans, and finishes the files and the manifest.
    if rank.number and not args.dry_run:
        parts = ranks.assist(args.out, rank, args.workers, args.scratch)
        said = f"rank {rank.number} of {rank.size} wrote {parts} parts"
        answer(args.json, of_rank(rank, parts), [said])
        return 0
    if args.model and frozen_graph(args.prefix) is not None:
        return _convert_frozen(args)
    if not args.dry_run:
        refuse_existing(args.out, args.scratch)  # before the reading, which may take long
        if not is_remote(args.out):
            check_writable(args.out)
    with open_checkpoint(args.prefix, newer=args.newer) as checkpoint:
        plan = planned(args, checkpoint)
        model = _source(args, checkpoint)
        if args.dry_run:
            work = (args.out, args.target, rank.size, args.workers, args.scratch)
            foreseen = forecast(plan, checkpoint, *work)
            answer(args.json, of_dry_run(plan, foreseen), plan.to_yaml().splitlines())
            say(*of_forecast(foreseen, rank.size), error=True)
            return 0
    say(*of_plan(plan))
    try:
        with ByteProgress() as progress:
            manifest = convert(
                plan,
                args.out,
                args.target,
                progress=progress,
                workers=args.workers,
                resume=args.resume,
                verify=not args.no_verify,
                rank=rank,
                scratch=args.scratch,
                model=model,
            )
    except KeyboardInterrupt:
        say("", "semisync convert: interrupted; go on with --resume", error=True)
        raise
    verified, source = not args.no_verify, os.path.join(args.out, SOURCE)
    lines = of_manifest(manifest, plan, args.out, verified)
    lines += [] if model is None else of_model(model, source)
    answer(args.json, of_conversion(args.out, manifest, verified, model, source), lines)
    return 0


def _source(args: argparse.Namespace, checkpoint: Checkpoint) -> Optional[Written]:
    if not args.model:
        told = {"input": "takes", "output": "returns", "asset": "may have"}
        for option, what in told.items():
            if getattr(args, option):
                raise UsageError(f"--{option} says what the module of --model {what}; give both")
        return None
    found = read_meta_graph(checkpoint, args.meta, named_inputs(args.input), args.asset)
    return write_source(found, checkpoint, find_outputs(found.graph, args.output))


def _write_back(args: argparse.Namespace) -> int:
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
    answer(args.json, of_returned(written), _lines_of(written, args.original))
    return 0


def _lines_of(written: Returned, original: str) -> List[str]:
    """The tensors written, and those of them from the original."""
    files = f"{written.shards} data file{'s' if written.shards > 1 else ''}"
    lines = [
        f"wrote {written.tensors} tensors, {written.nbytes:,} bytes, to {written.prefix} ({files})"
    ]
    if written.copied:
        lines.append(f"  copied from {original}: {some_of(written.copied, most=10)}")
    return [*lines, *(f"  note: {note}" for note in written.notes)]


def _convert_frozen(args: argparse.Namespace) -> int:
    """Writes the model, or says with --dry-run that it can be written; returns 0."""
    for name in _OF_VARIABLES.split():
        if getattr(args, name):
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{args.prefix} is a frozen graph, without variables: drop {option}")
    if not args.dry_run:
        check_writable(args.out)
    checkpoint = open_model(args.prefix)
    found = read_meta_graph(checkpoint, None, named_inputs(args.input), args.asset)
    model = write_source(found, checkpoint, find_outputs(found.graph, args.output))
    say(
        f"note: {checkpoint.prefix} is a frozen graph: the module scores, but it has no parameters "
        "and cannot be trained",
        error=True,
    )
    constants = len(model.constants.large)
    if args.dry_run:
        answer(args.json, of_frozen(None, constants))
        return 0
    with work_directory(args.out, 0) as directory:
        write_model(model, directory)
    path = os.path.join(args.out, SOURCE)
    lines = [f"wrote {path}: 0 parameters, {constants} constants in files"]
    answer(args.json, of_frozen(path, constants), lines)
    return 0
