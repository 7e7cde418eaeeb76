"""Checkpoints on a web server that answers ranges, read by fsspec's own HTTP file system."""

import importlib.util

import pytest

import migrate
from semisync import cli
from semisync.common.errors import BadInput, UsageError
from tests.migrate.range_server import serving
from tests.support.conversions import contents, interrupt, make_plan

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("aiohttp") is None, reason="the package aiohttp is not installed"
)


@pytest.fixture
def server(tf2_checkpoints):
    with serving(tf2_checkpoints) as (url, requests):
        yield url, requests


def test_a_conversion_from_a_url_finds_its_metagraph_and_is_the_same(
    server, tf2_checkpoints, tmp_path, small_parts
):
    url, requests = server
    here = migrate.convert(make_plan(tf2_checkpoints / "adagrad_ref"), tmp_path / "here")
    assert cli.main(["convert", f"{url}/adagrad_ref", str(tmp_path / "there")]) == 0
    there = migrate.read_manifest(tmp_path / "there")
    assert there.tensors == here.tensors and there.tables == here.tables
    files = {
        name: data for name, data in contents(tmp_path / "there").items() if "json" not in name
    }
    assert files.items() <= contents(tmp_path / "here").items()
    whole = [path for method, path, asked in requests if method == "GET" and asked is None]
    assert not [path for path in whole if ".data-" in path]  # ranges alone
    assert cli.main(["verify", f"{url}/adagrad_ref", str(tmp_path / "there")]) == 0


def test_a_changed_file_behind_a_url_is_not_resumed(tf2_checkpoints, tmp_path, small_parts):
    for file in tf2_checkpoints.glob("sgd.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with serving(tmp_path) as (url, _):
        plan = make_plan(f"{url}/sgd")
        interrupt(plan, tmp_path / "out", 2)
        data = next(tmp_path.glob("sgd.data-*"))
        data.write_bytes(data.read_bytes())
        with pytest.raises(
            UsageError, match="was begun with another plan, target, model or source"
        ):
            migrate.convert(plan, tmp_path / "out", resume=True)


def test_what_a_server_lacks_is_said(server):
    url, _ = server
    with pytest.raises(BadInput, match="there is no checkpoint http://127"):
        migrate.open_checkpoint(f"{url}/absent")
    with pytest.raises(BadInput, match="cannot be reached"):
        migrate.open_checkpoint("http://127.0.0.1:9/adagrad_ref")
