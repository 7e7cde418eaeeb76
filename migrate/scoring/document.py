"""The document of `semisync score --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

if TYPE_CHECKING:  # it imports pyarrow, which --help does not need
    from migrate.scoring.scores import Instability

SCHEMA = "semisync.score/1"


def document(
    out: str,
    rows: int,
    instability: Optional[Instability],
    positives: Optional[int] = None,
    unknown_ids: Optional[Mapping[str, float]] = None,
) -> Dict[str, Any]:
    """The scoring, as plain data.

    Args:
        positives: rows with label 1; None: not counted.
        unknown_ids: by table, the share of the ids looked up that it lacks; None: not counted.
    """
    return {
        "schema": SCHEMA,
        "out": out,
        "rows": rows,
        "positives": positives,
        "unknown_ids": unknown_ids,
        "instability": None if instability is None else instability.to_json(),
    }
