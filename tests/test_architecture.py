"""The map of the code holds: imports run one way, and folders stay small."""

import ast
import collections
import functools
import pathlib

import graphlib
import pytest

from semisync.common.walks import reachable

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ("semisync", "graph_rewrite", "migrate", "parity")

# From the ground up; a module stands on the floor of the longest prefix of its name, and imports
# from its own floor and those below it. CONTRIBUTING says what is on each.
FLOORS = (
    ("semisync.common",),
    ("semisync.encoding", "semisync.storage"),
    ("migrate.runtime",),  # what emitted models import
    (
        "graph_rewrite",
        "graph_rewrite.graph",
        "graph_rewrite.edit",
        "graph_rewrite.patterns",
        "graph_rewrite.batch_norm",
    ),
    ("semisync",),
    ("graph_rewrite.training", "graph_rewrite.metagraph"),
    ("parity",),
    ("migrate", "migrate.runtime.loading"),  # which reads what `convert` wrote
    (
        "semisync.__main__",
        "semisync.cli",
        "semisync.commands",
        "semisync.demo",
        "semisync.migration",
    ),
)
LARGEST_FOLDER = 20


def modules():
    """Every module of the packages: dotted name to path; a folder's `__init__` is the folder."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@functools.lru_cache(maxsize=None)
def imports_of(name):
    """What a module imports, wherever in it: modules of the packages, and of others."""
    return list(_imports_of(name))


def _imports_of(name):
    path = MODULES[name]
    folder = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder.split(".")[: len(folder.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else ()), *filter(None, [node.module])])
            for alias in node.names:
                inner = base + "." + alias.name
                yield inner if inner in MODULES else base


def arrows():
    """(importer, imported) for every import of one of our modules by another."""
    for name in MODULES:
        for imported in imports_of(name):
            if imported in MODULES and imported != name:
                yield name, imported


def siblings(importer, imported):
    """The two siblings between which an import runs, and the folder in which both lie.

    The packages themselves are one house: `semisync` stands on the lower folders of `graph_rewrite`
    and its `metagraph` on `semisync`, so that what lies directly in any of them are siblings.
    """
    first, second = importer.split("."), imported.split(".")
    depth = 0
    while depth < min(len(first), len(second)) and first[depth] == second[depth]:
        depth += 1
    folder = "" if depth <= 1 else ".".join(first[:depth])
    depth = max(depth, 1)
    return folder, ".".join(first[: depth + 1]), ".".join(second[: depth + 1])


def folders():
    """The imports among siblings, folder by folder: importer to what it imports."""
    graphs = collections.defaultdict(lambda: collections.defaultdict(set))
    for importer, imported in arrows():
        folder, one, other = siblings(importer, imported)
        if one != other:
            graphs[folder][one].add(other)
    return graphs


def test_imports_run_one_way_among_folders_and_the_modules_beside_them():
    for imports in folders().values():
        try:
            graphlib.TopologicalSorter(imports).prepare()
        except graphlib.CycleError as error:
            pytest.fail("a circle of imports: " + " <- ".join(error.args[1]))


def test_no_folder_holds_more_modules_than_a_reader_can_survey():
    size = collections.Counter(
        path.parent.relative_to(ROOT) for path in MODULES.values() if path.name != "__init__.py"
    )
    assert {str(folder): n for folder, n in size.items() if n > LARGEST_FOLDER} == {}


def test_every_module_says_what_it_holds():
    silent = [
        name
        for name, path in MODULES.items()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def importers_of(library, packages):
    return sorted(
        name
        for name in MODULES
        if name.split(".")[0] in packages
        and any(imported.split(".")[0] == library for imported in imports_of(name))
    )


def test_the_torch_world_imports_no_tensorflow():
    child = "migrate.scoring.tf_child"  # a program for the interpreter that has TensorFlow
    own = [name for name in MODULES if name.startswith(("migrate", "parity"))]
    needed = reachable(
        [name for name in own if not name.startswith(child)],
        lambda name: [one for one in imports_of(name) if one in MODULES],
    )
    importers = importers_of("tensorflow", PACKAGES)
    assert [name for name in needed if name in importers] == []


def test_the_tensorflow_world_imports_no_torch():
    assert importers_of("torch", ("semisync", "graph_rewrite")) == []


def floor_of(name):
    """The number of the floor on which a module stands."""
    number = {prefix: number for number, floor in enumerate(FLOORS) for prefix in floor}
    prefixes = (name.rsplit(".", cut)[0] for cut in range(name.count(".") + 1))
    return next(number[prefix] for prefix in prefixes if prefix in number)


def strings_of(name):
    """The modules of the packages that a module names as strings, but for its docstring's."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in MODULES:
            yield node.value


def test_packages_stand_on_those_below_them():
    """Lazy imports count, and modules named as strings; the bare name of a package is a word."""
    upward = {
        f"{importer} -> {imported}"
        for importer in MODULES
        for imported in [
            *(one for one in imports_of(importer) if one in MODULES),
            *(one for one in strings_of(importer) if "." in one),
        ]
        if floor_of(imported) > floor_of(importer)
    }
    facade = "migrate.runtime -> migrate.runtime.loading"  # the name `runtime.load` of model.py
    assert sorted(upward - {facade}) == []
