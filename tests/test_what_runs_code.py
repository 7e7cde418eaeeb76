"""Whatever can run what a file says stands in a few modules, each known here with its reason.

A new one is either made to read data alone, or has a line here and in docs/security.md.
"""

import ast
import functools
import pathlib

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("graph_rewrite", "migrate", "parity", "semisync")

# Calls that run text or import what a variable names, by module; and what they run.
RUNS = {
    ("exec", "migrate/model/load.py"): "the source that it has just written",
    ("exec", "migrate/runtime/source.py"): "model.py, for commands that run models",
    ("eval", "migrate/model/folding.py"): "expressions of constants that it has just written",
    ("eval", "migrate/behaviour/in_torch.py"): "expressions of model.py's source, for --forward",
    ("import_module", "migrate/behaviour/onnx_legs.py"): "packages of a list",
    ("import_module", "migrate/conversion/layout.py"): "a module of migrate.targets",
    ("import_module", "migrate/runtime/__init__.py"): "modules of a list",
    ("import_module", "migrate/scoring/in_torch.py"): "--torch-model",
    ("import_module", "migrate/scoring/tf_child/opened.py"): "--tf-import, and TFRA",
    ("import_module", "migrate/servers/plugins.py"): "--plugin",
    ("import_module", "migrate/targets/reading/torch_readers.py"): "safetensors",
    ("import_module", "migrate/torchrec/building.py"): "the optimizers that a conversion names",
    ("import_module", "parity/io/formats/tfrecord.py"): "packages of a list",
    ("import_module", "semisync/cli.py"): "the subcommands",
    ("import_module", "semisync/common/distribution.py"): "importlib's own",
    ("run_module", "semisync/cluster/forked.py"): "a module of semisync",
    ("spec_from_file_location", "migrate/scoring/in_torch.py"): "--torch-model",
    ("spec_from_file_location", "migrate/servers/plugins.py"): "--plugin",
}
RUNNERS = {name for name, _ in RUNS} | {"__import__", "run_path"}
UNPICKLERS = {"Unpickler", "_Unpickler", "load", "loads"}
# torch's readers unpickle freely, but as torch_readers.py uses them.
TORCHS = {
    "FileSystemReader",
    "FsspecReader",
    "HuggingFaceStorageReader",
    "load_state_dict_from_keys",
}


@functools.lru_cache(maxsize=1)
def modules():
    """(path, syntax tree) of each module of the packages."""
    return list(_modules())


def _modules():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def used(tree):
    """("", name) or (object, attribute), as ("pickle", "loads"), wherever one stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield getattr(node.value, "id", "?"), node.attr
        elif isinstance(node, ast.Name):
            yield "", node.id


def test_what_runs_text_or_imports_by_name_is_known():
    found = set()
    for path, tree in modules():
        for owner, name in used(tree):
            if name in RUNNERS and not (owner and name in ("exec", "eval")):  # as module.eval()
                found.add((name, path))
    assert found == set(RUNS)


def test_nothing_is_unpickled_but_by_the_one_that_knows_the_classes():
    for path, tree in modules():
        imported = {
            alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in [*node.names, ast.alias(name=getattr(node, "module", None) or "")]
        }
        assert not imported & {"cloudpickle", "dill", "joblib", "marshal", "shelve"}, path
        for owner, name in used(tree):
            if path != "migrate/targets/reading/dcp_metadata.py":
                assert not (owner == "pickle" and name in UNPICKLERS), f"{path}: pickle.{name}"
            if path != "migrate/targets/reading/torch_readers.py":
                assert name not in TORCHS and (owner, name) != ("dcp", "load"), f"{path}: {name}"
            assert name not in ("read_pickle", "unsafe_load"), path


def test_loaders_that_can_unpickle_are_told_not_to():
    safe = {
        "torch": ("weights_only", True),
        "np": ("allow_pickle", False),
        "numpy": ("allow_pickle", False),
    }
    seen = 0
    for path, tree in modules():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner = getattr(node.func.value, "id", "")
            if node.func.attr != "load" or owner not in {*safe, "yaml"}:
                continue
            seen += 1
            if owner == "yaml":
                assert path == "migrate/planning/yaml_text.py"  # whose loader is a SafeLoader
                continue
            word, value = safe[owner]
            given = {one.arg: getattr(one.value, "value", None) for one in node.keywords}
            assert given.get(word) is value, f"{path}: {owner}.load without {word}={value}"
    assert seen > 8
