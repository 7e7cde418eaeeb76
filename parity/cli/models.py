"""The models of --baseline-model and --candidate-model, which may explain why the scores differ.

Whoever configures the command sets their readers: `args.check_model` and `args.read_facts`.
"""

import argparse
from typing import Any, Dict

from parity.stats.equivalence import Verdict


def check_models(args: argparse.Namespace) -> None:
    """Raises BadInput for a model that is certainly unreadable, before any scores are read."""
    for path in filter(None, (args.baseline_model, args.candidate_model)):
        args.check_model(path)


def facts_of_models(args: argparse.Namespace, comparison: Any) -> Dict[str, Any]:
    """The facts that `parity.diagnose` takes; nothing is read where there is nothing to explain."""
    explained = comparison.decision is not Verdict.EQUIVALENT
    models = {side: getattr(args, side) for side in ("baseline_model", "candidate_model")}
    return {
        side: args.read_facts(path) if explained and path else None for side, path in models.items()
    }
