"""The output of `semisync convert --json`: of the plan with --dry-run, else of the result."""

from __future__ import annotations

from typing import Any, Dict, Optional

from migrate.cli.convert_text import counted
from migrate.conversion.forecast import Forecast
from migrate.launcher import Rank
from migrate.manifest.manifest import Manifest
from migrate.model.load import Written
from migrate.planning.plan import Plan
from migrate.to_tensorflow.write import Returned

PLANNED = "semisync.convert-plan/1"
CONVERTED = "semisync.convert/1"
RANK = "semisync.convert-rank/1"
FROZEN = "semisync.convert-frozen/1"
RETURNED = "semisync.to-tensorflow/1"


def of_dry_run(plan: Plan, work: Forecast) -> Dict[str, Any]:
    """The plan, with the keys of its YAML, and the bytes, files and threads that it will take."""
    return {"schema": PLANNED, "plan": plan.document(), "forecast": work._asdict()}


def of_conversion(
    out: str, manifest: Manifest, verified: bool, model: Optional[Written], path: str
) -> Dict[str, Any]:
    """The manifest, whether it was verified, and the contents of the module at `path`, if any."""
    written = None
    if model is not None:
        written = {"path": path, **counted(model)._asdict(), "notes": model.notes}
    document = {"schema": CONVERTED, "out": out, "verified": verified, "model": written}
    return {**document, "manifest": manifest.document()}


def of_rank(rank: Rank, parts: int) -> Dict[str, Any]:
    """The tensors written by a rank other than the first; that one has the manifest."""
    return {"schema": RANK, "rank": rank.number, "ranks": rank.size, "parts": parts}


def of_frozen(path: Optional[str], constants: int) -> Dict[str, Any]:
    """The module that was written of a frozen graph; path: None of a dry run."""
    return {"schema": FROZEN, "path": path, "parameters": 0, "constants": constants}


def of_returned(written: Returned) -> Dict[str, Any]:
    """The checkpoint that --to-tensorflow wrote."""
    return {"schema": RETURNED, **written._asdict()}
