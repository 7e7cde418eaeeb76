"""Which columns of scores hold logits, which are ranked as they are (parity.inputs.logits)."""

from typing import Any, Iterable, Optional, Tuple

from semisync.common.errors import UsageError

ROLES = ("baseline_score", "candidate_score")


def held_by(roles: Iterable[str]) -> Tuple[bool, bool]:
    """Whether the baseline's column, and the candidate's, are among those of logits."""
    held = tuple(roles)
    return ROLES[0] in held, ROLES[1] in held


def choose_columns(args: Any) -> None:
    """Takes --baseline-logit and --candidate-logit for the columns of scores.

    Raises:
        UsageError: a side has both a score and a logit.
    """
    for side in ("baseline", "candidate"):
        logit: Optional[str] = getattr(args, f"{side}_logit")
        if logit is not None and getattr(args, f"{side}_score") is not None:
            raise UsageError(f"give either --{side}-score or --{side}-logit, not both")
        if logit is not None:
            setattr(args, f"{side}_score", logit)
