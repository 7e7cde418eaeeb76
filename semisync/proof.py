"""The `parity` subcommand: parity's own, with migrate's readers of what a model was trained with.

`parity` knows labels, scores and rows alone. What --baseline-model and --candidate-model name is a
checkpoint or a converted directory, which `migrate` reads; this module joins the two.
"""

import argparse
from typing import Any

from parity.cli import command


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds parity's options, and the readers of the models they name."""
    command.configure(parser)
    parser.set_defaults(check_model=_check_model, read_facts=_read_facts)


def run(args: argparse.Namespace) -> int:
    """Compares as the options say; returns the verdict's exit code."""
    return command.run(args)


def _check_model(path: str) -> None:
    from migrate.facts.read import check_source

    check_source(path)


def _read_facts(path: str) -> Any:
    from migrate import read_facts

    return read_facts(path)
