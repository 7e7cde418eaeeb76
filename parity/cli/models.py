"""The models of --baseline-model and --candidate-model: what tells why the scores differ."""

import argparse
from typing import Any, Dict, Optional

from parity.diagnosis.facts import Facts
from parity.stats.equivalence import Verdict


def check_models(args: argparse.Namespace) -> None:
    """Raises BadInput for a model that is certainly unreadable, before any scores are read."""
    for path in filter(None, (args.baseline_model, args.candidate_model)):
        from migrate.facts.read import check_source

        check_source(path)


def facts_of_models(args: argparse.Namespace, comparison: Any) -> Dict[str, Any]:
    """What `parity.diagnose` takes; nothing is read where there is nothing to explain."""
    explained = comparison.decision is not Verdict.EQUIVALENT
    return {
        side: _facts(getattr(args, side)) if explained else None
        for side in ("baseline_model", "candidate_model")
    }


def _facts(path: Optional[str]) -> Optional[Facts]:
    if path is None:
        return None
    from migrate import read_facts

    return read_facts(path)
