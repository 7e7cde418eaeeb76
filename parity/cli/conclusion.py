"""How `semisync parity` ends, whatever the rows came from: gates, warnings, report, exit code."""

import argparse
import dataclasses
import datetime
import sys
from typing import Any, Dict, List, Mapping, Tuple

from parity.io import standard_input
from parity.stats.equivalence import Verdict
from parity.stats.worst import WorstRow

EXIT = {Verdict.EQUIVALENT: 0, Verdict.NOT_EQUIVALENT: 1, Verdict.INCONCLUSIVE: 2}


def decided(args: argparse.Namespace, found: Any, origin: Dict[str, Any]) -> Any:
    """The comparison with its gates, and with warnings of what the figures do not show."""
    from parity import doubts, require
    from parity.gates import parse_requirements

    found = dataclasses.replace(found, worst=_with_columns(args, found.worst))
    warnings = list(found.warnings)
    if warnings:
        warnings += doubts.of_files(origin["files"])
    warnings += warnings_of_join(args, origin.get("join", {}))
    warnings += doubts.of_parts(
        () if args.require_slices else found.slices, None if args.require_days else found.days
    )
    gated = args.require or args.require_slices or args.require_days
    if found.training is not None and gated:
        warnings.append(doubts.FIRST_RUNS)
    found = dataclasses.replace(found, warnings=tuple(warnings))
    margins = parse_requirements(args.require)
    return require(found, margins, args.require_slices, args.require_days)


def warnings_of_join(args: argparse.Namespace, join: Mapping[str, int]) -> Tuple[str, ...]:
    """How many rows a join, of which these are the counts, has left out."""
    from parity import doubts

    if not join:
        return ()
    sides = standard_input.renamed(args, [args.baseline, args.candidate])
    if args.merge:
        sides = ["the baseline's data", "the candidate's data"]
    return doubts.of_misses(join, *sides)


def columns_of_worst(args: argparse.Namespace) -> List[str]:
    """What the worst rows are to be known by."""
    named = [args.key, args.group, args.day, *args.slice, *args.show]
    return list(dict.fromkeys(name for name in named if name))


def _with_columns(args: argparse.Namespace, worst: Tuple[WorstRow, ...]) -> Tuple[WorstRow, ...]:
    """The rows with their values in the columns that name them."""
    names = columns_of_worst(args)
    if not worst or not names:
        return worst
    from parity.io.look_up import values_at

    values = values_at(args.baseline, names, [row.row for row in worst])
    return tuple(row._replace(columns=found) for row, found in zip(worst, values))


def conclude(
    args: argparse.Namespace, found: Any, origin: Dict[str, Any], names: Dict[str, Any]
) -> int:
    """Writes the report, says it in words; returns the decision's exit code."""
    from parity import write_report
    from parity.report import terminal, words
    from parity.report.versions import versions

    provenance = {
        **standard_input.renamed(args, {**origin, "inputs": _inputs(args)}),
        "columns": {name: column for name, column in names.items() if column},
        "versions": versions(),
        "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
    files = write_report(found, args.out, args.title, provenance, args.inconclusive)
    for line in (*terminal.lines(found, provenance), f"  Report: {', '.join(map(str, files))}"):
        print(line)
    if found.decision is Verdict.INCONCLUSIVE and args.inconclusive == "warn":
        sys.stdout.flush()
        print(f"semisync parity: warning: {words.headline(found)}", file=sys.stderr)
        return 0
    return EXIT[found.decision]


def _inputs(args: argparse.Namespace) -> Dict[str, List[str]]:
    """The data sets of either side, as they were named."""
    if args.merge:
        return {}
    if args.baseline_runs:
        return {"baseline": args.baseline_runs, "candidate": args.candidate_runs}
    return {"baseline": [args.baseline], "candidate": [args.candidate or args.baseline]}
