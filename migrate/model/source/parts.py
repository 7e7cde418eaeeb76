"""The two parts of a model that reads more than numbers in dense tensors.

    transform   raw features -> numbers: text, vocabularies, sparse tensors, all values whose number
                depends on the input's values. No parameter has a part in it
    numeric     these numbers -> outputs, in torch alone

1. An Assign that is DYNAMIC belongs to the first part, with all that it needs, unless it needs a
   parameter, or a value from a branch or a loop.
2. Values that the first part computes and the second reads are passed by name. Sizes of tensors are
   read again in the second.
3. A model without such a statement is one part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, NamedTuple, Sequence, Set

from migrate.model.source.statements import (
    DYNAMIC,
    RAW,
    SIZES,
    Assign,
    Block,
    Statement,
    assigned,
    names_in,
    read,
)

GIVEN = "given"


class Parts(NamedTuple):
    """Blocks, and the names that the first hands to the second."""

    transform: Block
    handed: List[str]
    numeric: Block


def split(block: Block, results: Sequence[str], free: Set[str]) -> Parts:
    """The parts of `block`, the expressions `results` being read after it.

    Args:
        free: the attributes, as "self.name", that are not parameters.
    """
    first = _first(block, free)
    if not first:
        return Parts(Block(), [], block)
    homes = {name: one for one in first.values() for name in one.targets}
    wanted = {name for text in results for name in names_in(text)}
    handed: Set[str] = set()
    rest: List[Statement] = []
    for statement in reversed(block.statements):
        own = assigned(statement) & wanted
        if id(statement) in first and first[id(statement)].kind != SIZES:
            handed |= own
        elif own or not isinstance(statement, Assign):
            # A copy of a size that the first part computes too: each part is written alone.
            rest.append(replace(statement) if isinstance(statement, Assign) else statement)
            wanted |= read(statement)
    order = [name for name in homes if name in handed]
    given = [Assign([name], f"{GIVEN}[{name!r}]") for name in order]
    return Parts(Block(list(first.values())), order, Block([*given, *reversed(rest)]))


def _first(block: Block, free: Set[str]) -> Dict[int, Assign]:
    """The statements of the first part, in their order."""
    homes: Dict[str, Assign] = {}
    moved: Set[str] = set()  # names that depend on a parameter, a branch or a loop
    for statement in block.statements:
        if not isinstance(statement, Assign):
            moved |= assigned(statement)
    needed: Set[int] = set()
    for statement in block.statements:
        if not isinstance(statement, Assign):
            continue
        names = read(statement)
        own = any(_is_own(name) and name not in free for name in names)
        # A name that a branch or a loop assigns belongs to the second part with all its
        # assignments.
        if own or moved.intersection([*names, *statement.targets]):
            moved.update(statement.targets)
            continue
        homes.update((name, statement) for name in statement.targets)
        if statement.kind == DYNAMIC:
            _add(statement, homes, needed)
    whole = [one for one in block.statements if isinstance(one, Assign)]
    if not needed:
        return {}
    # All raw features are read in the first part: `numeric` gets numbers alone.
    return {id(one): one for one in whole if id(one) in needed or one.kind == RAW}


def _add(statement: Assign, homes: Dict[str, Assign], needed: Set[int]) -> None:
    pending = [statement]
    while pending:
        one = pending.pop()
        if id(one) not in needed:
            needed.add(id(one))
            pending += [homes[name] for name in read(one) if name in homes]


def _is_own(name: str) -> bool:
    return name.startswith("self.")
