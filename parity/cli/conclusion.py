"""How `semisync parity` ends, in memory and beyond it: gates, warnings, report, exit code."""

import argparse
import dataclasses
import sys
from typing import Any, Dict, List, Mapping, Tuple

from parity.io import standard_input
from parity.stats.equivalence import Verdict
from parity.stats.worst_rows import WorstRow
from semisync.answers import answer
from semisync.common import exit_codes
from semisync.common.terminal import say

EXIT = {
    Verdict.EQUIVALENT: exit_codes.DONE,
    Verdict.NOT_EQUIVALENT: exit_codes.NOT_EQUIVALENT,
    Verdict.INCONCLUSIVE: exit_codes.INCONCLUSIVE,
}


def decided(args: argparse.Namespace, comparison: Any, origin: Dict[str, Any]) -> Any:
    """The comparison with its gates, and with warnings about its figures' blind spots."""
    from parity import doubts, require
    from parity.gates import parse_requirements

    comparison = dataclasses.replace(comparison, worst=_with_columns(args, comparison.worst))
    warnings = list(comparison.warnings)
    if doubts.SAME_SCORES in warnings or doubts.SAME_RUN in warnings:
        warnings += doubts.of_files(origin["files"])
    warnings += warnings_of_join(args, origin.get("join", {}))
    if comparison.verdict is not Verdict.NOT_EQUIVALENT:  # which says so already
        warnings += doubts.of_parts(
            () if args.require_slices else comparison.slices,
            None if args.require_days else comparison.days,
        )
    required = parse_requirements(args.require)
    gated = required.margins or args.require_slices or args.require_days
    if comparison.training is not None and gated:
        warnings.append(doubts.FIRST_RUNS)
    comparison = dataclasses.replace(comparison, warnings=tuple(warnings))
    parts = args.require_slices, args.require_days
    return require(comparison, required.margins, *parts, required.least_auc)


def warnings_of_join(args: argparse.Namespace, join: Mapping[str, int]) -> Tuple[str, ...]:
    """Warnings of the rows that a join left out; `join` has its counts."""
    from parity import doubts

    if not join:
        return ()
    sides = standard_input.renamed(args, [args.baseline, args.candidate])
    if args.merge:
        sides = ["the baseline's data", "the candidate's data"]
    return doubts.of_misses(join, *sides)


def columns_of_worst(args: argparse.Namespace) -> List[str]:
    """The columns by which the worst rows are known."""
    named = [*args.key, args.group, args.day, *args.slice, *args.show]
    return list(dict.fromkeys(name for name in named if name))


def _with_columns(args: argparse.Namespace, worst: Tuple[WorstRow, ...]) -> Tuple[WorstRow, ...]:
    """The rows with their values in the columns that name them."""
    names = columns_of_worst(args)
    if not worst or not names:
        return worst
    from parity.io.look_up import values_at

    rows = [row.row for row in worst]
    values = values_at(args.baseline, names, rows, args.text)
    return tuple(row._replace(columns=held) for row, held in zip(worst, values))


def conclude(
    args: argparse.Namespace, comparison: Any, origin: Dict[str, Any], names: Dict[str, Any]
) -> int:
    """Writes the report and prints it, in words or JSON; returns the decision's exit code."""
    from parity import write_report
    from parity.provenance import stamp
    from parity.report import terminal
    from parity.report.schema import document
    from parity.report.words.verdict import headline

    provenance = {
        **standard_input.renamed(args, {**origin, "inputs": _inputs(args)}),
        "columns": {name: column for name, column in names.items() if column},
        **stamp(),
    }
    lines = terminal.lines(comparison, provenance)
    if args.out is not None:
        files = write_report(comparison, args.out, args.title, provenance, args.inconclusive)
        lines.append(f"  Report: {', '.join(map(str, files))}")
    answer(args.json, document(comparison, args.title, provenance), lines)
    if comparison.decision is Verdict.INCONCLUSIVE and args.inconclusive == "warn":
        sys.stdout.flush()  # the report comes before the warning where both go to one place
        say(f"semisync parity: warning: {headline(comparison)}", error=True)
        return exit_codes.DONE
    return EXIT[comparison.decision]


def _inputs(args: argparse.Namespace) -> Dict[str, List[str]]:
    """The data sets of either side, as they were named."""
    if args.merge:
        return {}
    if args.baseline_runs:
        return {"baseline": args.baseline_runs, "candidate": args.candidate_runs}
    return {"baseline": [args.baseline], "candidate": [args.candidate or args.baseline]}
