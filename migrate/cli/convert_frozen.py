"""`semisync convert GRAPH OUT --model` of a frozen graph: model.py and its constants.

There are no variables to convert, and no manifest of them.
"""

from __future__ import annotations

import argparse
import os

from migrate.cli.convert_arguments import named_inputs
from migrate.cli.convert_output import of_frozen
from migrate.model.load import SOURCE, read_meta_graph, write_model, write_source
from migrate.model.outputs import find_outputs
from migrate.open import open_model
from migrate.targets.work_directory import work_directory
from semisync.answers import answer
from semisync.common.errors import UsageError
from semisync.common.files import check_writable
from semisync.common.terminal import say

_OF_VARIABLES = (
    "cast drop duplicates ids meta newer partition_strategy plan rename resume static tables"
)


def run(args: argparse.Namespace) -> int:
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
