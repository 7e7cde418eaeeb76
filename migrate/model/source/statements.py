"""Statements of an emitted method, and their text.

An expression that is used once, in the same block, is inlined, unless the line gets too long or,
with one element per line, it takes more lines: as a person would write. It is put in parentheses,
and `ast.unparse` removes those that are not needed. Values that are returned together and passed on
together, as by `*` or to torch.cat, have no names.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Sequence, Set, Union

from migrate.model.source.layout import STRING, wrapped

WIDTH = 88  # of a line into which another expression is inlined
_NAME = re.compile(rf"{STRING}|(?<![\w.])[A-Za-z_]\w*(?!\w|=(?!=))")


# The kinds of an Assign. TENSORS: a tensor. SIZES: sizes of tensors. RAW: a raw feature. DYNAMIC:
# text, or values whose number depends on the input's values.
TENSORS, SIZES, RAW, DYNAMIC = "tensors", "sizes", "raw", "dynamic"


@dataclass
class Assign:
    """targets = text; with several targets, text is of a tuple.

    Attributes:
        inline: False where the order of evaluation counts.
        kind: see above.
    """

    targets: List[str]
    text: str
    inline: bool = True
    kind: str = TENSORS


@dataclass
class Block:
    """Statements in their order."""

    statements: List["Statement"] = field(default_factory=list)


@dataclass
class If:
    """if condition: then; else: orelse. If both are the same, `then` alone is written."""

    condition: str
    then: Block
    orelse: Block


@dataclass
class While:
    """while True: body, which has an Until."""

    body: Block


@dataclass
class Until:
    """Leaves the loop unless `condition`."""

    condition: str


@dataclass
class Return:
    """return text."""

    text: str


Statement = Union[Assign, If, Return, While, Until]


def render(block: Block, results: Sequence[str], indent: int) -> List[str]:
    """Lines of source; `results` are the expressions that follow the block."""
    uses = _count(block, results)
    _inline(block, uses)
    return list(_lines(block, "    " * indent))


def names_in(text: str) -> Set[str]:
    """The names that an expression reads; attributes of `self` as "self.name"."""
    found: Set[str] = set()
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            found.add(f"self.{node.attr}")
    return found - {"self"}


def read(statement: Statement) -> Set[str]:
    """The names and attributes of `self` that a statement reads, the blocks in it included."""
    names = {name for text in _texts(statement) for name in names_in(text)}
    return names.union(*(read(one) for block in _blocks(statement) for one in block.statements))


def assigned(statement: Statement) -> Set[str]:
    """The names that a statement assigns, the blocks in it included."""
    names = set(statement.targets if isinstance(statement, Assign) else ())
    return names.union(*(assigned(one) for block in _blocks(statement) for one in block.statements))


def drop_unread(block: Block, results: Sequence[str]) -> None:
    """Removes the statements of `block` on which none of the expressions `results` depends."""
    wanted = {name for text in results for name in names_in(text)}
    kept: List[Statement] = []
    for statement in reversed(block.statements):
        if assigned(statement) & wanted:
            kept.append(statement)
            wanted |= read(statement)
    block.statements = kept[::-1]


def unassigned(block: Block, results: Sequence[str], names: Set[str]) -> Set[str]:
    """The `names` that `block`, or `results` after it, reads before they are assigned."""
    missing: Set[str] = set()

    def run(statements: Sequence[Statement], known: Set[str]) -> Set[str]:
        """The names that are assigned after `statements`."""
        left = None  # at the end of a loop's last iteration
        for statement in statements:
            needed = {name for text in _texts(statement) for name in names_in(text)}
            missing.update((needed & names) - known)
            if isinstance(statement, Assign):
                known = known.union(statement.targets)
            elif isinstance(statement, If):
                then, orelse = (run(one.statements, known) for one in _blocks(statement))
                known = then & orelse
            elif isinstance(statement, While):
                known = run(statement.body.statements, known)
            else:
                left = known
        return known if left is None else left

    after = run(block.statements, set())
    wanted = {name for text in results for name in names_in(text)}
    return missing | ((wanted & names) - after)


def _texts(statement: Statement) -> List[str]:
    if isinstance(statement, (Assign, Return)):
        return [statement.text]
    return [statement.condition] if isinstance(statement, (If, Until)) else []


def _blocks(statement: Statement) -> List[Block]:
    if isinstance(statement, If):
        return [statement.then, statement.orelse]
    return [statement.body] if isinstance(statement, While) else []


def _count(block: Block, results: Sequence[str]) -> Dict[str, int]:
    """How often each name is read, by the block and by `results` after it."""
    texts = list(results)
    pending = [block]
    while pending:
        for statement in pending.pop().statements:
            texts += _texts(statement)
            pending += _blocks(statement)
    return Counter(name for text in texts for name in _names(text))


def _names(text: str) -> List[str]:
    """The names in an expression, outside of strings, each as often as it occurs."""
    return [name for name in _NAME.findall(text) if name[-1] not in "'\""]


def put(text: str, name: str, other: str) -> str:
    """`text` with another expression wherever it has `name`, outside of strings."""
    pattern = rf"{STRING}|(?<![\w.]){re.escape(name)}(?!\w|=(?!=))"
    return re.sub(pattern, lambda one: other if one[0] == name else one[0], text)


def _inline(block: Block, uses: Dict[str, int]) -> None:
    """Inlines expressions that are used once; drops unused ones, and unused names of others."""
    kept: List[Statement] = []
    waiting: Dict[str, Assign] = {}
    assigned = _assigned_twice(block)
    for statement in block.statements:
        if isinstance(statement, (Assign, Return)):
            statement.text = _filled(statement.text, waiting, _begin(statement))
        if isinstance(statement, Assign):
            name = statement.targets[0]
            # A name that is assigned twice may change before its use.
            if len(statement.targets) == 1 and statement.inline and name not in assigned:
                if not uses.get(name):
                    continue
                if uses[name] == 1:
                    waiting[name] = statement
            elif len(statement.targets) > 1:
                if statement.inline and {uses.get(one) for one in statement.targets} == {1}:
                    # Values that are passed on together, as `*text`, wait under their joint names.
                    waiting[", ".join(statement.targets)] = statement
                statement.targets = [one if uses.get(one) else "_" for one in statement.targets]
        elif isinstance(statement, (If, Until)):
            statement.condition = _filled(statement.condition, waiting)
        for inner in _blocks(statement):
            _inline(inner, uses)
        kept.append(statement)
    used = {id(statement) for statement in waiting.values() if statement.text == ""}
    block.statements = [statement for statement in kept if id(statement) not in used]


def _begin(statement: Union[Assign, Return]) -> str:
    """The text before the expression in the line of a statement."""
    return "return " if isinstance(statement, Return) else f"{', '.join(statement.targets)} = "


def _assigned_twice(block: Block) -> Set[str]:
    seen: Set[str] = set()
    twice: Set[str] = set()
    for statement in block.statements:
        for target in statement.targets if isinstance(statement, Assign) else ():
            (twice if target in seen else seen).add(target)
    return twice


def _filled(text: str, waiting: Dict[str, Assign], begin: str = "if ") -> str:
    """Inlines the waiting expressions that `text` reads, while the line has room after `begin`.

    The text of an inlined expression is then "".
    """
    together = [names for names in waiting if "," in names and _are_given(text, names)]
    for name in dict.fromkeys([*together, *_names(text)]):
        other = waiting.get(name)
        if other is None or not other.text:
            continue
        if name in together:
            changed = put(text, name, f"*{other.text}")
            # torch.cat([*x]) is torch.cat(x).
            for join in ("torch.cat", "torch.stack"):
                changed = changed.replace(f"{join}([*{other.text}]", f"{join}({other.text}")
        else:
            changed = put(text, name, f"({other.text})")
        whole = ast.unparse(ast.parse(changed, mode="eval"))
        room = _count_lines(begin + text)
        if name in together:
            room += _count_lines(f"{name} = {other.text}")
        if len(whole) <= WIDTH or (room > 1 and _count_lines(begin + whole) <= room):
            text, other.text = whole, ""
    return text


def _are_given(text: str, names: str) -> bool:
    """Whether a call or a list in `text` contains all of these values, one after the other."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        given: Sequence[ast.expr] = ()
        if isinstance(node, ast.Call):
            given = node.args
        elif isinstance(node, ast.List):  # x[*y] is syntax from Python 3.11 on only
            given = node.elts
        if f", {names}, " in f", {', '.join(map(ast.unparse, given))}, ":
            return True
    return False


def _count_lines(line: str) -> int:
    lines = [*wrapped("        " + line)]
    return len(lines)


def _lines(block: Block, margin: str) -> Iterator[str]:
    if not block.statements:
        yield margin + "pass"
    for statement in block.statements:
        if isinstance(statement, Assign):
            text = statement.text
            if len(statement.targets) > 1 and text[0] == "(" and text[-1] == ")":
                text = ", ".join(map(ast.unparse, _elements(text))) or text
            line = f"{margin}{', '.join(statement.targets)} = {text}"
            long = len(line) > WIDTH and len(statement.targets) > 1 and _elements(f"({text})")
            yield f"{margin}{', '.join(statement.targets)} = ({text})" if long else line
        elif isinstance(statement, Return):
            yield f"{margin}return {statement.text}"
        elif isinstance(statement, Until):
            yield f"{margin}if not ({statement.condition}):"
            yield f"{margin}    break"
        elif isinstance(statement, If):
            yield from _branches(statement, margin)
        else:
            first, *rest = statement.body.statements
            if isinstance(first, Until):
                yield f"{margin}while {first.condition}:"
                yield from _lines(Block(rest), margin + "    ")
            else:
                yield f"{margin}while True:"
                yield from _lines(statement.body, margin + "    ")


def _elements(text: str) -> List[ast.expr]:
    """The elements of a tuple; none of another expression."""
    tree = ast.parse(text, mode="eval").body
    return tree.elts if isinstance(tree, ast.Tuple) else []


def _branches(statement: If, margin: str) -> Iterator[str]:
    then, orelse, condition = statement.then, statement.orelse, statement.condition
    if not then.statements:
        then, orelse, condition = orelse, then, f"not {condition}"
    if not then.statements:
        return
    sides = [[*_lines(side, margin)] for side in (then, orelse)]  # once: nesting would double it
    if _is_dropout(statement) or sides[0] == sides[1]:
        yield from sides[0]
        return
    yield f"{margin}if {condition}:"
    yield from (f"    {line}" for line in sides[0])
    if orelse.statements:
        yield f"{margin}else:"
        yield from (f"    {line}" for line in sides[1])


def _is_dropout(statement: If) -> bool:
    """Whether the condition is only that the module trains, which F.dropout checks itself."""
    both = [one for block in _blocks(statement) for one in block.statements]
    lines = [f"{one.targets[0]} = {one.text}" for one in both if isinstance(one, Assign)]
    if statement.condition != "self.training" or not len(both) == len(lines) == 2:
        return False
    name, text = lines[1].split(" = ", 1)
    dropped = rf"{name} = F\.dropout\({re.escape(text)}, [0-9.]+, self\.training\)"
    return re.fullmatch(dropped, lines[0]) is not None
