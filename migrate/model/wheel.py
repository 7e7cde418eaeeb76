"""A converted model as a wheel of its own: serving it needs no other part of this project.

    NAME/__init__.py     load, and INPUTS, OUTPUTS, VARIABLES of model.py
    NAME/model.py        the directory's, edited or not
    NAME/runtime/        of `migrate.runtime` the modules that model.py needs, and their own imports
    NAME/weights.pt      the state dict; constants.npz and assets/ as they are

1. The names from `runtime` in model.py determine the modules; their imports determine the others.
2. They are the same files, under another name: `migrate.runtime` is NAME.runtime there, and
   `semisync.common` NAME.runtime.common.
3. The wheel requires the packages that these modules import, from the installed versions on.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import importlib.metadata
import io
import os
import pathlib
import re
import zipfile
from typing import Any, Dict, Iterator, List, Mapping

import migrate.runtime
import semisync.common
from migrate.model.load import SOURCE
from migrate.runtime.files import ASSETS, CONSTANTS, has_text
from migrate.runtime.serving.packed import WEIGHTS
from migrate.runtime.source import read_source
from semisync.common.errors import BadInput, UsageError
from semisync.common.files import check_writable, replacing
from semisync.common.walks import reachable
from semisync.storage.files import read_whole
from semisync.storage.within import refuse_link_out

_RUNTIME, _COMMON = "migrate.runtime", "semisync.common"
_ROOTS = {
    _RUNTIME: pathlib.Path(migrate.runtime.__file__).parent,
    _COMMON: pathlib.Path(semisync.common.__file__).parent,
}
_PACKED = "migrate.runtime.serving.packed"
_PACKAGES = ("numba", "numpy", "pyarrow", "torch", "torchrec")  # named like their distributions
_NAMES = ("INPUTS", "OUTPUTS", "TRAINING", "VARIABLES", "load")


def write_wheel(directory: str, out: str, name: str, version: str = "1.0") -> str:
    """Writes the result of `semisync convert --model` in a directory as a wheel.

    It installs a package with `load`, which returns the model with its weights, with `runtime`, and
    with INPUTS, OUTPUTS, TRAINING and VARIABLES of model.py.

    Args:
        directory: the conversion, with model.py as it is now.
        out: the directory of the wheel, which is made if it does not exist.
        name: of the distribution and of its package, such as "clicks_model".
        version: as PyPI knows versions.

    Returns:
        The path of the wheel.

    Raises:
        BadInput: the directory has no model.py.
        UsageError: the name is not valid for a package of its own, or the version is not valid.

    Examples:
        path = migrate.write_wheel("converted", "dist", "clicks_model", "1.0")
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in (*_PACKAGES, "migrate", "semisync"):
        raise UsageError(f"{name!r} is not the name of a package, such as clicks_model")
    if not re.fullmatch(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", version):
        raise UsageError(f"{version!r} is not a version, such as 1.0")
    path = os.path.join(directory, SOURCE)
    if not os.path.exists(path):
        raise BadInput(f"{directory} has no {SOURCE}; convert the model with --model")
    check_writable(out)
    source = pathlib.Path(path).read_text(encoding="utf-8")
    homes = _homes(source, directory)
    modules = _closure(homes)
    files: Dict[str, bytes] = {}
    for module in modules:
        text = _path(module).read_text(encoding="utf-8")
        files[_place(module, name)] = _renamed(text, name).encode()
    for folder in {place.rpartition("/")[0] for place in files}:
        files.setdefault(f"{folder}/__init__.py", b'"""Part of a model."""\n')
    files[f"{name}/runtime/__init__.py"] = _renamed(_facade(homes), name).encode()
    files[f"{name}/model.py"] = _renamed(source, name).encode()
    files[f"{name}/__init__.py"] = _front(name).encode()
    files.update(_kept(directory, name))
    os.makedirs(out, exist_ok=True)
    return _zip(files, out, name, version, _required(modules, source))


def _homes(source: str, directory: str) -> Dict[str, str]:
    """The module of each name of `runtime` in a source, and of those needed to serve it."""
    names = set(re.findall(r"\bruntime\.(\w+)", source)) | {"keep_freed_memory"}
    if has_text(directory):
        names.add("Strings")
    if "def transform(" in source and "import torchrec" in source:
        names.add("NumericPart")
    known = migrate.runtime.HOME
    unknown = sorted(names - set(known))
    if unknown:
        raise BadInput(f"{SOURCE} reads runtime.{unknown[0]}, which does not exist")
    return {one: _PACKED if one == "load" else known[one] for one in sorted(names)}


def _facade(homes: Mapping[str, str]) -> str:
    """NAME/runtime/__init__.py."""
    lines = [f"from {home} import {one} as {one}" for one, home in homes.items()]
    return '"""What model.py imports."""\n\n' + "\n".join(lines) + "\n"


def _front(name: str) -> str:
    """NAME/__init__.py."""
    listed = ", ".join(_NAMES)
    told = f'"""A model: `{name}.load()` has its weights, INPUTS says what it takes."""'
    return f"{told}\n\nfrom {name} import runtime\nfrom {name}.model import {listed}\n"


def _closure(homes: Mapping[str, str]) -> List[str]:
    """Modules, and those of ours that they import as they are imported."""

    def imported(module: str) -> Iterator[str]:
        return (one for one in _imported(_path(module)) if _is_ours(one) and one not in _ROOTS)

    return sorted(reachable(homes.values(), imported))


def _imported(path: pathlib.Path) -> Iterator[str]:
    pending: List[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        # What a function or method imports is not imported with its module.
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            pending += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if _is_ours(inner) and _path(inner).exists() else node.module


def _is_ours(module: str) -> bool:
    return any(module == root or module.startswith(root + ".") for root in _ROOTS)


def _path(module: str) -> pathlib.Path:
    root = next(root for root in _ROOTS if module == root or module.startswith(root + "."))
    base = _ROOTS[root].joinpath(*module[len(root) + 1 :].split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def _place(module: str, name: str) -> str:
    package = _renamed(module, name).replace(".", "/")
    return f"{package}/__init__.py" if _path(module).name == "__init__.py" else f"{package}.py"


def _renamed(text: str, name: str) -> str:
    text = re.sub(r"\bsemisync\.common\b", f"{name}.runtime.common", text)
    text = re.sub(r"\bmigrate\.runtime\b", f"{name}.runtime", text)
    return re.sub(r"\bfrom migrate import\b", f"from {name} import", text)


def _kept(directory: str, name: str) -> Dict[str, bytes]:
    """The weights, and the files of the model."""
    import torch

    model = read_source(directory).load(directory)
    weights = io.BytesIO()
    torch.save(model.state_dict(), weights)
    found = {f"{name}/{WEIGHTS}": weights.getvalue()}
    folder = pathlib.Path(directory)
    paths = [folder / CONSTANTS, *sorted((folder / ASSETS).glob("*"))]
    for path in paths:
        if path.exists():
            inside = path.relative_to(folder).as_posix()
            refuse_link_out(directory, inside)
            found[f"{name}/{inside}"] = read_whole(str(path))
    return found


def _required(modules: List[str], source: str) -> List[str]:
    """Requires-Dist of the packages that modules and model.py import."""
    imported = {one.partition(".")[0] for module in modules for one in _imported(_path(module))}
    imported |= {
        one.split(".")[0] for one in re.findall(r"^(?:import|from) ([\w.]+)", source, re.M)
    }
    found = sorted(imported.intersection(_PACKAGES))
    # PEP 440 permits no local version, such as torch's +cpu, after >=.
    versions = (importlib.metadata.version(one).partition("+")[0] for one in found)
    return [f"{one}>={version}" for one, version in zip(found, versions)]


def _zip(files: Dict[str, bytes], out: str, name: str, version: str, required: List[str]) -> str:
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {one}" for one in required]
    wheel = "Wheel-Version: 1.0\nGenerator: semisync\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    told: Dict[str, Any] = {"METADATA": "\n".join([*metadata, ""]), "WHEEL": wheel}
    files = {**files, **{f"{info}/{one}": text.encode() for one, text in told.items()}}
    record = [f"{place},{_digest(content)},{len(content)}" for place, content in files.items()]
    # RECORD lists itself without a digest and a size, see the wheel format (PEP 427).
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    path = os.path.join(out, f"{name}-{version}-py3-none-any.whl")
    with replacing(path) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, content in files.items():
            archive.writestr(place, content)
    return path


def _digest(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return "sha256=" + digest.rstrip(b"=").decode()
