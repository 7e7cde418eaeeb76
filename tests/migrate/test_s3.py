"""Checkpoints and conversions in S3, served by moto to s3fs; skipped where one is not installed."""

import contextlib
import http.server
import logging
import subprocess
import sys
import threading

import pytest

import migrate
from migrate.conversion import job
from migrate.targets.work_directory import partial_path
from semisync import cli
from tests.support.conversions import contents, make_plan
from tests.support.programs import killed
from tests.support.require import environment, forked_tensorflow

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


@pytest.mark.long
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


SMALL = """
import signal, sys, threading
from migrate.conversion import layout
from migrate.stream import regions
from semisync.cli import main
regions.CHUNK_BYTES, regions.PART_BYTES, regions.UPLOAD_BYTES = 96, 200, 3000
"""

# Stands still, for ever, where its third file would be uploaded.
STOPPING = f"""{SMALL}
upload, seen, lock = layout.upload, [], threading.Lock()
def stopping(path, url):
    with lock:
        seen.append(url)
        if len(seen) == 3:
            print("now", flush=True)
            signal.pause()
    upload(path, url)
layout.upload = stopping
main(sys.argv[1:])
"""

SMALL += "sys.exit(main(sys.argv[1:]))"


CONVERSION = ["convert", "s3://bucket/adagrad_ref", "s3://bucket/out"]


def run(code, *arguments, **more):
    """Python code that converts from the bucket into it, as a process."""
    return subprocess.Popen(
        [forked_tensorflow(sys.executable), "-c", code, *CONVERSION, *map(str, arguments)],
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(*processes):
    """Exit code, stdout and stderr of each."""
    said = [process.communicate(timeout=300) for process in processes]
    return [(process.returncode, *texts) for process, texts in zip(processes, said)]


def in_bucket(fs):
    """The bytes of each file of the conversion but the manifest, which names its source."""
    files = {name.rpartition("/")[2]: fs.cat_file(name) for name in fs.find("bucket/out")}
    assert files.pop("manifest.json")
    return files


def on_disk(source, out):
    """The same of a conversion on disk."""
    migrate.convert(make_plan(source), out)
    return {name: data for name, data in contents(out).items() if name != "manifest.json"}


@pytest.mark.long
def test_a_conversion_from_s3_to_s3_that_kill_9_ended_resumes(
    bucket, tf2_checkpoints, tmp_path, small_parts
):
    arguments = [*CONVERSION, "--scratch", tmp_path / "scratch", "--workers", "1"]
    assert killed(STOPPING, *arguments)[0].startswith("s3://bucket/adagrad_ref: ")
    bucket.invalidate_cache()
    work = partial_path("s3://bucket/out", tmp_path / "scratch")
    parts = job.read(work).parts
    files = [f"bucket/out/{parts[number][0].file}" for number in job.finished(work)]
    kept = {name: bucket.info(name)["LastModified"] for name in files}
    assert kept
    ((code, _, said),) = ended(run(SMALL, "--scratch", tmp_path / "scratch"))
    assert code == 3 and "go on with it with --resume" in said
    ((code, out, said),) = ended(run(SMALL, "--scratch", tmp_path / "scratch", "--resume"))
    assert code == 0 and "to s3://bucket/out (dcp, manifest.json), verified" in out, said
    bucket.invalidate_cache()
    assert {name: bucket.info(name)["LastModified"] for name in kept} == kept
    assert in_bucket(bucket) == on_disk(tf2_checkpoints / "adagrad_ref", tmp_path / "here")
    assert cli.main(["verify", "s3://bucket/adagrad_ref", "s3://bucket/out"]) == 0
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.long
def test_ranks_upload_their_shares(bucket, tf2_checkpoints, tmp_path, small_parts):
    ranks = [
        run(
            SMALL,
            *("--scratch", tmp_path / "scratch"),
            RANK=str(rank),
            WORLD_SIZE="2",
            TORCHELASTIC_RUN_ID="one",
        )
        for rank in range(2)
    ]
    found = ended(*ranks)
    assert [code for code, _, _ in found] == [0, 0], found
    assert int(found[1][1].split()[-2]) > 0  # rank 1 of 2 wrote N parts
    bucket.invalidate_cache()
    assert in_bucket(bucket) == on_disk(tf2_checkpoints / "adagrad_ref", tmp_path / "here")


@pytest.mark.few(1)
@pytest.mark.parametrize("target", ["dcp", "safetensors"])
def test_a_conversion_to_s3_verifies_there(bucket, tf2_checkpoints, tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    prefix = str(tf2_checkpoints / "adagrad_ref")
    assert cli.main(["convert", prefix, "s3://bucket/out", "--target", target]) == 0
    assert cli.main(["verify", prefix, "s3://bucket/out"]) == 0
    assert cli.main(["verify", prefix, "s3://bucket/out", "--sample", "3"]) == 0


class _Refusing(http.server.BaseHTTPRequestHandler):
    """A store without files whose disks have failed."""

    def do_GET(self):
        self.answer(200, b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")

    def do_HEAD(self):
        self.answer(404, b"")

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(500, b"<Error><Code>InternalError</Code><Message>no disk</Message></Error>")

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def refusing():
    """The URL of such a store."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.long
@pytest.mark.parametrize("trouble", ["no bucket", "no credentials", "no disk"])
def test_where_s3_cannot_be_written_one_line_says_so(
    bucket, tf2_checkpoints, tmp_path, monkeypatch, capsys, trouble
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    out, said = "s3://bucket/out", trouble
    with refusing() as url:
        if trouble == "no bucket":
            out, said = "s3://elsewhere/out", "bucket does not exist"
        elif trouble == "no credentials":
            said = "credentials"
            monkeypatch.delenv("AWS_ACCESS_KEY_ID")
            monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        else:
            monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        s3fs.S3FileSystem.clear_instance_cache()
        assert cli.main(["convert", str(tf2_checkpoints / "adagrad_ref"), out]) == 3
    line = capsys.readouterr().err
    assert said in line and line.count("\n") == 1
    assert not list(tmp_path.iterdir())
