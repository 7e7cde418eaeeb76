"""The result of a verification: what was compared, and the differences."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional

from parity.verified import SCHEMA

_MAX_NAMED = 20  # differences that are named one by one


@dataclass
class Verification:
    """The compared values, and the differences.

    Attributes:
        source: the checkpoint's prefix.
        directory: that `convert` wrote.
        sample: rows of each tensor that were drawn, None for all.
        tensors: how many were compared.
        rows: how many were compared.
        hashes: pieces whose SHA-256 was checked.
        differing_rows: how many of the rows differ.
        bound: largest fraction of a tensor's rows that may still differ, at `confidence`.
        confidence: of `bound`.
        source_agrees: of a frozen graph, whether model.py is as its conversion writes it, in every
            letter; None of a checkpoint, of which --forward compares model.py's results.
        unchecked: the omitted checks, a clause each.
        differences: one sentence each, of the first ones.
        notes: remarks that are not differences.

    Examples:
        >>> from migrate.verification import verify
        >>> found = verify("model.ckpt-40000", "converted")
        >>> found.verified, found.differences
        (True, [])
    """

    source: str
    directory: str
    sample: Optional[int] = None
    tensors: int = 0
    rows: int = 0
    hashes: int = 0
    differing_rows: int = 0
    bound: float = 0.0
    confidence: float = 0.95
    source_agrees: Optional[bool] = None
    unchecked: List[str] = field(default_factory=list)
    differences: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        """Whether something was compared, and nothing differs."""
        return not self.differences and bool(self.tensors or self.source_agrees)

    def to_json(self) -> Dict[str, Any]:
        """The findings as `semisync verify --json` prints them.

        Returns:
            All attributes and `verified`, by name; `semisync parity --verified` takes it as
            evidence.
        """
        return {"schema": SCHEMA, "verified": self.verified, **asdict(self)}

    def add(self, other: Verification) -> None:
        """Adds the findings in further rows.

        Args:
            other: of the same two sides.
        """
        self.rows += other.rows
        self.hashes += other.hashes
        self.differing_rows += other.differing_rows
        for sentence in other.differences:
            self.differs(sentence)

    def differs(self, sentence: str) -> None:
        """Notes a difference.

        Args:
            sentence: that names it.
        """
        if len(self.differences) < _MAX_NAMED:
            self.differences.append(sentence)

    def drew(self, rows: int) -> None:
        """Notes that rows of a tensor were drawn at random.

        Args:
            rows: how many.
        """
        # The exact binomial bound for no failure in `rows` draws.
        self.bound = max(self.bound, 1 - (1 - self.confidence) ** (1 / rows))
