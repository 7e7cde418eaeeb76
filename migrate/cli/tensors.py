"""The options on the fate of each tensor of a checkpoint, for every command that plans."""

from __future__ import annotations

import argparse
from typing import Any, Dict, Tuple

from migrate.planning.choosing import NO_TABLES
from migrate.planning.plan import STRATEGIES
from semisync.common.errors import UsageError


def add_tensors(group: argparse._ArgumentGroup) -> None:
    """Declares what `tensors` reads: which tensors are tables, what they are called, which are left
    out."""
    tables = group.add_mutually_exclusive_group()
    tables.add_argument(
        "--tables", metavar="REGEX", help="variables that are tables; default: those looked up"
    )
    tables.add_argument(
        "--no-tables",
        dest="tables",
        action="store_const",
        const=NO_TABLES,
        help="no variable is a table: the model is dense",
    )
    group.add_argument(
        "--partition-strategy",
        choices=STRATEGIES,
        help="how ids were assigned to partitions, if the MetaGraph does not tell",
    )
    group.add_argument(
        "--rename",
        metavar="REGEX=NAME",
        action="append",
        default=[],
        help="rename tables and dense variables, as re.sub does; may be repeated",
    )
    group.add_argument("--drop", metavar="REGEX", help="tensors to leave out")


def tensors(args: argparse.Namespace) -> Dict[str, Any]:
    """The options of `add_tensors`, as arguments of `migrate.plan`."""
    return {
        "tables": args.tables,
        "partition_strategy": args.partition_strategy,
        "rename": [_substitution(text) for text in args.rename],
        "drop": args.drop,
    }


def _substitution(text: str) -> Tuple[str, str]:
    """REGEX and NAME, around the last =."""
    pattern, equals, name = text.rpartition("=")
    if not equals:
        raise UsageError(f"--rename {text}: expected REGEX=NAME")
    return pattern, name
