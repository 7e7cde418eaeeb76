"""What docs/api shows, checked and run: `python -m tests.docs.reference PACKAGE...`.

1. A page of docs/api names what is public: `::: NAME`, of a package or module all that is in it.
2. Each public function and class, and each public method, says what its arguments are, what it
   returns, and what it raises where its own code raises one of this project's errors.
3. Each public function and class has an example. `>>>` runs here, in the folder that `Shelf` fills:
   a checkpoint and its conversion, a hash table, click logs. A block without `>>>` needs more than
   one process: its lines stand in a test or in a block of docs that runs.

Sections are read by the parser that makes the site. What is wrong is printed, a line each.
"""

import ast
import doctest
import enum
import importlib
import inspect
import io
import os
import pathlib
import pkgutil
import re
import sys
import tempfile
import textwrap

from griffe import Docstring

from tests.docs.page import blocks
from tests.docs.shelf import Shelf
from tests.support.require import ROOT

ERRORS = {"BadInput", "MissingExtra", "SemisyncError", "UsageError"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_SHOWN = re.compile(r"^::: (\S+)$", re.MULTILINE)
_OPTIONS = {"warnings": False, "returns_multiple_items": False, "returns_named_value": False}


def shown(package):
    """{name: object} of the functions and classes that a page shows."""
    found = {}
    for name in _SHOWN.findall((ROOT / "docs" / "api" / (package + ".md")).read_text()):
        thing = pkgutil.resolve_name(name)
        if inspect.ismodule(thing):
            names = getattr(thing, "__all__", None) or _own(thing)
            found.update((name + "." + one, getattr(thing, one)) for one in names)
        else:
            found[name] = thing
    return {name: thing for name, thing in found.items() if callable(thing)}


def _own(module):
    members = vars(module).items()
    return [name for name, one in members if name[0] != "_" and _here(one, module.__name__)]


def _here(thing, module):
    return callable(thing) and getattr(thing, "__module__", None) == module


def methods(cls):
    """{name: function} of a class's public methods, but for those that a base class describes."""
    found = {}
    for name, member in vars(cls).items():
        function = inspect.unwrap(getattr(member, "__func__", member))
        inherited = any(hasattr(base, name) for base in cls.__mro__[1:])
        if name[0] != "_" and inspect.isfunction(function) and not inherited:
            found[name] = function
    return found


def sections(thing):
    """{kind: section} of a docstring."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return {one.kind.value: one for one in Docstring(text).parse("google", **_OPTIONS)}


def missing(name, thing):
    """What a docstring lacks, a list of sentences."""
    if not (thing.__doc__ or "").strip():
        return [name + " has no docstring"]
    there = sections(thing)
    told = {one for kind in ("parameters", "attributes") for one in _names(there.get(kind))}
    found = [f"{name} does not say what {one} is" for one in _parameters(thing) if one not in told]
    if inspect.isfunction(thing) and _returns(thing) and not there.keys() & {"returns", "yields"}:
        found.append(name + " does not say what it returns")
    raised = {one.annotation for one in there["raises"].value} if "raises" in there else set()
    raised = {word for one in raised for word in re.findall(r"\w+", str(one))}
    return found + [f"{name} does not say when it raises {one}" for one in _raises(thing) - raised]


def _names(section):
    entries = section.value if section else ()
    return {part.strip(" *") for one in entries for part in one.name.split(", ")}


def _parameters(thing):
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        return list(thing.__members__)
    if getattr(thing, "_is_protocol", False):
        return []
    try:
        parameters = inspect.signature(thing).parameters
    except ValueError:  # one of C
        return []
    return [one for one in parameters if one not in ("self", "cls")]


def _code(thing):
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def _returns(function):
    """Whether a function returns or yields a value."""
    for node in _of(_code(function)):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, ast.Return) and node.value is not None:
            return not (isinstance(node.value, ast.Constant) and node.value.value is None)
    return False


def _raises(thing):
    """The project's errors that the thing's own code raises; of a class, that making one does."""
    code = _code(thing)
    functions = [code]
    if isinstance(code, ast.ClassDef):
        made = ("__init__", "__post_init__", "__new__")
        functions = [one for one in code.body if getattr(one, "name", "") in made]
    raised = [node.exc for one in functions for node in _of(one) if isinstance(node, ast.Raise)]
    names = {one.func.id for one in raised if isinstance(one, ast.Call) and hasattr(one.func, "id")}
    return names & ERRORS


def _of(function):
    """The nodes of a function, without those of functions inside it."""
    within = [function]
    while within:
        node = within.pop()
        yield node
        inner = ast.iter_child_nodes(node)
        within += [one for one in inner if not isinstance(one, (ast.FunctionDef, ast.Lambda))]


def example(name, thing, names, run):
    """What is wrong with a thing's example, a list of texts; `names` are what it may use."""
    section = sections(thing).get("examples")
    if section is None:
        return [name + " has no example"]
    text = "\n\n".join(part for _, part in section.value)
    if ">>>" not in text:
        code = "\n".join(line for line in text.split("\n") if line.startswith("    ")) or text
        return [] if _flat(code) in run else [f"no test runs the example of {name}:\n{code}"]
    test = doctest.DocTestParser().get_doctest(text + "\n", dict(names), name, name, 0)
    said = io.StringIO()
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.write)
    return [said.getvalue()] if said.getvalue() else []


def _flat(code):
    """Code without what its layout adds."""
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", code))


def run_elsewhere():
    """All code of the tests, and of the pages' blocks that run, in one string."""
    code = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        code += [text for kind, text in blocks(page) if kind == "python"]
    return _flat("\n".join(code))


def problems(package, shelf, run):
    """What is wrong on a package's page, a list of texts."""
    found = []
    for name, thing in shown(package).items():
        found += missing(name, thing)
        for method, function in methods(thing).items() if inspect.isclass(thing) else ():
            found += missing(name + "." + method, function)
        with shelf.around(package) as names:
            found += example(name, thing, names, run)
    return found


def main(packages):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        shelf, run = Shelf(), run_elsewhere()
        for package in packages:
            importlib.import_module(package)
            for problem in problems(package, shelf, run):
                print(problem, flush=True)
        os.chdir("/")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(ROOT)))
    main(sys.argv[1:])
