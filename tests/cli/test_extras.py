"""What is missing is one sentence that names the package, what it is for and the command."""

import sys

import fsspec  # noqa: F401  its registry, from which s3fs goes
import pytest

import migrate
from migrate.facts.read import read_settings_file
from migrate.targets.reading import torch_readers
from migrate.targets.reading.safetensors import SafetensorsReader
from parity.io.formats.tfrecord import tables_of_values
from parity.io.store import Store
from semisync.common.distribution import install_command
from semisync.common.errors import MissingExtra

NEEDS = {  # {what is opened: (package, what opens it, extra)}
    "given.tfrecord": ("google_crc32c", lambda path: list(tables_of_values(path, ["a"])), "report"),
    "given.yaml": ("yaml", read_settings_file, "report"),
    "files": ("duckdb", lambda path: Store(), "report"),
    "memory://given": ("fsspec.core", migrate.open_checkpoint, "files"),
    "s3://given": ("s3fs", migrate.open_checkpoint, "stores"),
    "given": ("safetensors", SafetensorsReader, "torch"),
    "given to load": ("safetensors", lambda path: torch_readers.read(path, {}), "torch"),
}


@pytest.mark.parametrize("given", NEEDS)
def test_a_missing_package_is_named_with_its_extra(given, tmp_path, monkeypatch):
    package, opened, extra = NEEDS[given]
    path = given if ":" in given else str(tmp_path / given)
    if package == "safetensors":
        (tmp_path / given).mkdir()
        (tmp_path / given / "model.safetensors").write_bytes(b"")
    elif ":" not in given:
        (tmp_path / given).write_bytes(b"{}")
    imported = sys.modules["fsspec.registry"]._registry
    monkeypatch.delitem(imported, "s3", raising=False)
    for name in {package, package.partition(".")[0]}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra) as refusal:
        opened(path)
    asked = {"files": "join files"}.get(given, path)
    begin, _, end = str(refusal.value).partition(", needed to ")
    assert begin == f"the Python package {package!r}"
    assert asked in end
    assert end.endswith(f", is not installed; run: {install_command(extra)}")
