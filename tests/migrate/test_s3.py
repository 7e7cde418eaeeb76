"""Checkpoints in S3, served by moto to s3fs; skipped where either is not installed."""

import logging

import pytest

import migrate
from semisync import cli
from tests.support.conversions import contents, make_plan

s3fs = pytest.importorskip("s3fs", reason="the package s3fs is not installed")
server = pytest.importorskip("moto.server", reason="the package moto[server] is not installed")


@pytest.fixture
def bucket(tf2_checkpoints, monkeypatch):
    """s3fs, and in s3://bucket the checkpoint adagrad_ref."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    moto.start()
    host, port = moto.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    s3fs.S3FileSystem.clear_instance_cache()
    fs = s3fs.S3FileSystem()
    fs.mkdir("bucket")
    for file in tf2_checkpoints.glob("adagrad_ref.*"):
        fs.pipe_file(f"bucket/{file.name}", file.read_bytes())
    yield fs
    fs.rm("bucket", recursive=True)
    moto.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_conversion_from_s3_reads_ranges_and_is_the_same(
    bucket, tf2_checkpoints, tmp_path, monkeypatch
):
    asked = []
    original = s3fs.S3FileSystem._cat_file

    async def counting(self, path, start=None, end=None, **more):
        asked.append((path, start, end))
        return await original(self, path, start=start, end=end, **more)

    monkeypatch.setattr(s3fs.S3FileSystem, "_cat_file", counting)
    here = migrate.convert(make_plan(tf2_checkpoints / "adagrad_ref"), tmp_path / "here")
    url, out = "s3://bucket/adagrad_ref", str(tmp_path / "there")
    assert cli.main(["convert", url, out, "--no-verify"]) == 0
    there = migrate.read_manifest(out)
    assert there.tensors == here.tensors and there.tables == here.tables
    bytes_here = contents(tmp_path / "here")
    assert [name for name, data in contents(out).items() if data != bytes_here[name]] == [
        "manifest.json"
    ]
    sizes = [end - start for path, start, end in asked if ".data-" in path]
    assert sum(sizes) <= sum(one.nbytes for one in migrate.open_checkpoint(url).values())
    assert cli.main(["verify", url, out]) == 0


@pytest.mark.parametrize(
    "url, variable, said",
    [
        ("s3://bucket/absent", None, "there is no checkpoint s3://bucket/absent"),
        ("s3://elsewhere/adagrad_ref", None, "bucket"),
        ("s3://bucket/adagrad_ref", "AWS_ACCESS_KEY_ID", "credentials"),
    ],
)
def test_what_s3_lacks_is_said_in_one_line(bucket, monkeypatch, capsys, url, variable, said):
    if variable:
        monkeypatch.delenv(variable)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        s3fs.S3FileSystem.clear_instance_cache()
    assert cli.main(["inspect", url]) == 3
    line = capsys.readouterr().err
    assert said in line and line.count("\n") == 1


def test_an_object_that_is_cut_short_is_not_converted(bucket, tmp_path, capsys):
    name = bucket.glob("bucket/adagrad_ref.data-00001-*")[0]
    bucket.pipe_file(name, bucket.cat_file(name)[:-40])
    assert cli.main(["convert", "s3://bucket/adagrad_ref", str(tmp_path / "out")]) == 3
    assert "the file is truncated" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
