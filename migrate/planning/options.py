"""The options of the caller of `migrate.plan`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Optional, Sequence, Set, Tuple

from migrate.manifest.id_modes import DUPLICATES, MODES
from migrate.manifest.naming import table_name
from migrate.planning.plan import CASTS, STRATEGIES
from semisync.common.errors import UsageError


@dataclass
class Options:
    """The arguments of `migrate.plan`, checked; raises UsageError for an unknown one.

    Attributes:
        renamed: the patterns in `rename` that match a name.
    """

    strategy: Optional[str]
    rename: Sequence[Tuple[str, str]]
    cast: Optional[str]
    drop: Optional[str]
    ids: str
    duplicates: str
    renamed: Set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.strategy not in (None, *STRATEGIES):
            raise UsageError(f"partition strategy {self.strategy!r}: expected 'div' or 'mod'")
        if self.cast not in (None, *CASTS):
            raise UsageError(f"cast {self.cast!r}: expected one of {list(CASTS)}")
        if self.ids not in MODES or self.duplicates not in DUPLICATES:
            raise UsageError(
                f"ids {self.ids!r}, duplicates {self.duplicates!r}: expected one of {list(MODES)} "
                f"and one of {list(DUPLICATES)}"
            )

    def name_of(self, name: str) -> str:
        """The target's name of `name`, after all renaming."""
        for pattern, replacement in self.rename:
            try:
                name, times = re.subn(pattern, replacement, name)
            except (re.error, IndexError) as error:
                raise UsageError(
                    f"--rename {pattern}={replacement} is not a substitution: {error}"
                ) from error
            if times:
                self.renamed.add(pattern)
        return name

    def table_name_of(self, name: str) -> str:
        """The target's name of a table, see `table_name`."""
        return table_name(self.name_of(name).replace("/", "_"))

    def check_renamed(self) -> None:
        """Raises UsageError if a pattern of `rename` has matched no name."""
        for pattern, _ in self.rename:
            if pattern not in self.renamed:
                raise UsageError(f"--rename {pattern!r} names no table and no dense variable")

    def cast_of(self, dtype: str) -> Optional[str]:
        """The type that a table of `dtype` is cast to, None where it is left as it is."""
        return None if self.cast == dtype else self.cast

    @property
    def reason(self) -> str:
        """The reason for leaving out the tensors that `drops` names."""
        return f"--drop {self.drop}"

    def drops(self, name: str) -> bool:
        """Whether the caller leaves `name` out."""
        return self.drop is not None and search(self.drop, name, "--drop")


def search(pattern: str, name: str, option: str) -> bool:
    """re.search; UsageError, which names the option, for a bad regular expression."""
    try:
        return re.search(pattern, name) is not None
    except re.error as error:
        raise UsageError(f"{option} {pattern!r} is not a regular expression: {error}") from error
