"""The allowed content of generated source, whoever wrote it: no other is run, imported or written.

The emitter inserts text of a graph into source only by `repr`. This check does not rely on that. It
parses the source, and accepts the emitter's constructs:

1. statements that assign, branch, loop and return, within the methods of `Model` and `load`, and
   the imports of every model.py; no other definition, and no comprehension, lambda or f-string;
2. names that the source assigns, and builtins of `BUILTINS`; modules, functions and builtins keep
   their meaning;
3. of a module the members in `MEMBERS`; of any other object those in `METHODS`; of `self` its own
   attributes. None begins with an underscore, except `super().__init__`.

Nothing here opens a file, a process or another module. Any other source is a defect of the emitter.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import AbstractSet, Any, FrozenSet, List, Mapping, Optional, Tuple

import migrate.runtime

BUILTINS = frozenset(["float", "len", "max", "min", "range", "slice", "sum", "super", "tuple"])

_IMPORTS = {  # in every model.py: module, member, and its name there
    ("", "math", None),
    ("", "os", None),
    ("", "torch", None),
    ("", "torchrec", None),
    ("migrate", "runtime", None),
    ("torch", "nn", None),
    ("torch.nn", "functional", "F"),
}
_FUNCTIONS = frozenset(["__init__", "forward", "load", "numeric", "transform"])
_ARGUMENTS = frozenset(["directory", "files", "given", "inputs", "self"])


def _words(*texts: str) -> FrozenSet[str]:
    return frozenset(word for text in texts for word in text.split())


# The members of each module that source may read.
MEMBERS: Mapping[str, FrozenSet[str]] = {
    "F": _words("dropout elu embedding layer_norm leaky_relu pad relu6 softplus softsign"),
    "math": _words("prod"),
    "nn": _words("LayerNorm Linear Module Parameter"),
    "os": _words("path.abspath path.dirname"),
    "runtime": _words(
        *migrate.runtime.HOME,
        "LookupTable.from_text_file Strings.concat Strings.of Strings.stack",
    ),
    "torch": _words(
        "bfloat16 bool complex64 complex128 float16 float32 float64 int8 int16 int32 int64 uint8",
        "uint16 uint32 uint64",
        "fft.fft fft.ifft fft.irfft fft.irfft2 fft.rfft fft.rfft2",
        "linalg.det linalg.inv linalg.vector_norm special.ndtri",
        "acos acosh arange asin asinh atan atan2 atanh cat ceil clamp complex cos cosh diag",
        "diag_embed digamma div einsum empty erf erfc erfinv exp expm1 floor fmod full isfinite",
        "isinf isnan lgamma linspace log log1p log_softmax maximum minimum multinomial ones",
        "ones_like rand randint randn relu round rsqrt searchsorted sigmoid sign sin sinh softmax",
        "sqrt square stack tan tanh tensor where zeros_like",
    ),
    "torchrec": _words(
        "EmbeddingBagCollection EmbeddingBagConfig EmbeddingCollection EmbeddingConfig",
        "PoolingType.MEAN PoolingType.SUM",
    ),
}

# Attributes and methods of a tensor, of Strings, of a module or of its files that source may use.
METHODS = _words(
    "abs all amax amin any argmax argmin argsort asset bfloat16 bias bool broadcast_to clamp",
    "constant contiguous cpu cumprod cumsum detach device diagonal diagonal_scatter distinct",
    "double expand_dims find find_or_hash flatten flip float get half ids imag index_select int",
    "item long mean mH mT ndim nonzero norms numel numeric permute pooled prod real",
    "register_buffer reshape roll select shape sizes split square squeeze sum T tile to tolist",
    "training transform tril triu unbind unsqueeze view weight",
)

_OPERATORS = (ast.boolop, ast.cmpop, ast.operator, ast.unaryop, ast.expr_context)
_EXPRESSIONS = (
    *(ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Dict),
    *(ast.IfExp, ast.List, ast.Name, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple),
    *(ast.UnaryOp, ast.keyword, ast.Expression),
)
_STATEMENTS = (
    *(ast.Assign, ast.Break, ast.ClassDef, ast.Expr, ast.FunctionDef, ast.If, ast.Import),
    *(ast.ImportFrom, ast.Module, ast.Pass, ast.Return, ast.While, ast.alias, ast.arg),
    ast.arguments,
)


class NotOurs(Exception):
    """Generated source holds constructs that the emitter does not write: a defect."""


def checked_module(text: str) -> CodeType:
    """The code of a model.py.

    Raises:
        NotOurs: it is not Python, or holds more than the emitter writes.
    """
    tree = _parsed(text, "exec")
    _Guard(tree, (*_EXPRESSIONS, *_STATEMENTS)).check()
    return _compiled(tree, "exec")


def checked_expression(text: str, names: AbstractSet[str]) -> CodeType:
    """The code of an expression over `names`.

    Raises:
        NotOurs: it is not Python, or holds more than the emitter writes.
    """
    tree = _parsed(text, "eval")
    _Guard(tree, _EXPRESSIONS, names).check()
    return _compiled(tree, "eval")


def _parsed(text: str, mode: str) -> ast.AST:
    try:
        return ast.parse(text, "model.py", mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotOurs(f"generated source is not Python: {error}") from error


def _compiled(tree: Any, mode: str) -> CodeType:
    try:
        return compile(tree, "model.py", mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotOurs(f"generated source does not compile: {error}") from error


class _Guard:
    """The check of one tree.

    Args:
        kinds: the allowed types of nodes.
        names: the known names, besides those that it assigns itself.
    """

    def __init__(
        self, tree: ast.AST, kinds: Tuple[type, ...], names: AbstractSet[str] = frozenset()
    ) -> None:
        self._nodes, self._kinds = list(ast.walk(tree)), (*kinds, *_OPERATORS)
        stored = {node.id for node in self._of(ast.Name) if not isinstance(node.ctx, ast.Load)}
        self._names = {*stored, *names, *_ARGUMENTS, *MEMBERS, *BUILTINS, "Model", "__file__"}
        # The parts of longer chains: a.b within a.b.c.
        self._inner = {id(node.value) for node in self._of(ast.Attribute)}
        self._called = {id(node.func) for node in self._of(ast.Call)}
        self._own = {node.attr for node in self._of(ast.Attribute) if _is_own(node)}

    def check(self) -> None:
        """Raises NotOurs at the first node that the emitter does not write."""
        for node in self._nodes:
            check = getattr(self, "_" + type(node).__name__, None)
            if not isinstance(node, self._kinds) or (check is not None and not check(node)):
                place = f"line {getattr(node, 'lineno', 1)} of generated source"
                found = ast.unparse(node)[:80] or type(node).__name__
                raise NotOurs(f"{place} has {found!r}, which is not written here")

    def _of(self, kind: Any) -> List[Any]:
        return [node for node in self._nodes if isinstance(node, kind)]

    def _Import(self, node: ast.Import) -> bool:
        return {("", one.name, one.asname) for one in node.names} <= _IMPORTS

    def _ImportFrom(self, node: ast.ImportFrom) -> bool:
        return {(node.module, one.name, one.asname) for one in node.names} <= _IMPORTS

    def _ClassDef(self, node: ast.ClassDef) -> bool:
        return node.name == "Model"

    def _FunctionDef(self, node: ast.FunctionDef) -> bool:
        return node.name in _FUNCTIONS

    def _arg(self, node: ast.arg) -> bool:
        return node.arg in _ARGUMENTS

    def _Name(self, node: ast.Name) -> bool:
        if isinstance(node.ctx, ast.Store):  # known names must keep their meaning
            return node.id not in {*MEMBERS, *BUILTINS, "Model", "self"}
        whole = node.id in MEMBERS and id(node) not in self._inner
        return node.id in self._names and not whole

    def _Subscript(self, node: ast.Subscript) -> bool:
        return isinstance(node.ctx, ast.Load)

    def _Call(self, node: ast.Call) -> bool:
        name = getattr(node.func, "id", None)
        return isinstance(node.func, ast.Attribute) or name in {*BUILTINS, "Model"}

    def _Attribute(self, node: ast.Attribute) -> bool:
        if id(node) in self._inner:  # checked as a part of the longer one
            return True
        root, path = _path(node)
        if path == ["__init__"] and ast.unparse(node.value) == "super()":
            return True
        if any(part.startswith("_") for part in path):
            return False
        if root is not None and root in MEMBERS:
            return ".".join(path) in MEMBERS[root]
        if root == "self":
            # `self` calls the modules that the constructor assigns, and known methods.
            return id(node) not in self._called or path[-1] in {*METHODS, *self._own}
        return METHODS.issuperset(path) and isinstance(node.ctx, ast.Load)


def _is_own(node: ast.Attribute) -> bool:
    """Whether it is an attribute of self that is assigned."""
    return isinstance(node.ctx, ast.Store) and _path(node) == ("self", [node.attr])


def _path(node: ast.expr) -> Tuple[Optional[str], List[str]]:
    """The name that a chain of attributes begins with, if it is one, and the attributes."""
    path: List[str] = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    return getattr(node, "id", None), path
