"""The contents of report.json, and its JSON Schema, shipped beside this module."""

import pathlib
from typing import Any, Dict, Mapping

from parity.result import Comparison
from semisync.common import json_text


def schema_text() -> str:
    """The schema, as in the package."""
    return pathlib.Path(__file__).with_name("report.schema.json").read_text(encoding="utf-8")


def schema() -> Dict[str, Any]:
    """The schema (draft 2020-12) of `Comparison.to_json()` and of report.json.

    It allows further keys, as later versions may add some without a change of "schema".
    """
    return json_text.loads(schema_text())


def document(comparison: Comparison, title: str, provenance: Mapping[str, Any]) -> Dict[str, Any]:
    """The contents of report.json."""
    return {**comparison.to_json(), "title": title, "provenance": dict(provenance)}
