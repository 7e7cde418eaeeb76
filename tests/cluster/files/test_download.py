"""What arrives is what was published, whatever happens on the way, or nothing does."""

import fcntl
import logging
import os
import subprocess
import threading

import pytest

from semisync.cluster import files
from semisync.cluster.files import downloading
from semisync.cluster.files.client import Client, SourceFailed
from semisync.cluster.files.incoming import Incoming
from semisync.cluster.files.manifest import PARTS, make_manifest
from semisync.common.errors import BadInput, UsageError
from tests.cluster.files.conftest import CHUNK, contents
from tests.cluster.files.http import KEY

SIZE = 11 * CHUNK + 7 + 10  # of all files


def download(digest, sources, into, deadline=60.0, key=KEY, tls=None):
    files.download(key, digest, sources, into, deadline, tls)


@pytest.fixture
def asked(monkeypatch):
    """Whom a download asks for which chunks: [(URL, Chunk)]."""
    whole, told = Client.chunk, []

    async def chunk(self, source, digest, wanted):
        told.append((source, wanted))
        return await whole(self, source, digest, wanted)

    monkeypatch.setattr(Client, "chunk", chunk)
    return told


def size(asked):
    """Bytes of the chunks."""
    return sum(chunk.size for _, chunk in asked)


def test_every_file_arrives_and_nothing_else_stays(node, source, tmp_path, asked):
    root = node()
    digest = root.publish(source, "job")
    download(digest, [root.url], tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(source)
    assert size(asked) == SIZE


def test_several_nodes_with_the_same_files_share_the_work(node, source, tmp_path, asked):
    first, second = node(), node()
    digest = first.publish(source, "job")
    download(digest, [first.url], tmp_path / "first")
    assert second.publish(tmp_path / "first", "job") == digest
    asked.clear()
    download(digest, [first.url, second.url], tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(source)
    assert {url for url, _ in asked} == {first.url, second.url}
    assert size(asked) == SIZE
    first.close()
    download(digest, [first.url, second.url], tmp_path / "again")
    assert contents(tmp_path / "again") == contents(source)


def interrupted(node, source, into, chunks):
    """Leaves a download of `source` of which so many chunks were written."""
    incoming = Incoming(make_manifest(source, "job", CHUNK), into)
    for chunk in [one for one in incoming.missing if one.number < chunks]:
        data = (source / chunk.file.path).read_bytes()[chunk.first : chunk.first + chunk.size]
        assert incoming.accept(chunk, data)
    incoming.close()


def test_a_download_goes_on_where_it_was_interrupted(node, source, tmp_path, asked):
    interrupted(node, source, tmp_path / "copy", 7)
    assert not (tmp_path / "copy" / "model.ckpt").exists()
    root = node()
    digest = root.publish(source, "job")
    download(digest, [root.url], tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(source)
    assert size(asked) == SIZE - 7 * CHUNK


def test_what_was_damaged_meanwhile_is_fetched_again(node, source, tmp_path, asked):
    interrupted(node, source, tmp_path / "copy", 7)
    (part,) = (tmp_path / "copy" / PARTS).glob("*/0.part")
    with open(str(part), "r+b") as file:
        file.seek(2 * CHUNK + 5)
        file.write(b"rot")
    root = node()
    digest = root.publish(source, "job")
    download(digest, [root.url], tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(source)
    assert size(asked) == SIZE - 6 * CHUNK


def test_files_in_their_places_are_checked_kept_or_replaced_and_others_stay(
    node, source, tmp_path, asked
):
    copy = tmp_path / "copy"
    subprocess.check_call(["cp", "-r", str(source), str(copy)])
    damaged = bytearray((copy / "one").read_bytes())
    damaged[100] ^= 1
    (copy / "one").write_bytes(bytes(damaged))
    (copy / "mine").write_bytes(b"stays")
    root = node()
    digest = root.publish(source, "job")
    download(digest, [root.url], copy)
    assert size(asked) == CHUNK
    assert contents(copy) == dict(contents(source), mine=b"stays")


def damage(source):
    """Changes one byte of a published file, and nothing that a look at the folder would tell."""
    before = os.stat(str(source / "model.ckpt"))
    with open(str(source / "model.ckpt"), "r+b") as file:
        file.seek(3 * CHUNK + 1)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(str(source / "model.ckpt"), ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_changed_byte_is_found_and_its_source_is_named(node, source, tmp_path):
    root = node()
    digest = root.publish(source, "job")
    damage(source)
    with pytest.raises(BadInput) as error:
        download(digest, [root.url], tmp_path / "copy")
    assert "{}: it sent wrong bytes of model.ckpt (from byte {})".format(root.url, 3 * CHUNK) in (
        str(error.value)
    )
    assert not (tmp_path / "copy" / "model.ckpt").exists()


def test_a_bad_source_is_dropped_and_named_and_the_others_serve(node, source, tmp_path, caplog):
    subprocess.check_call(["cp", "-r", str(source), str(tmp_path / "bad")])
    bad, good = node(), node()
    digest = bad.publish(tmp_path / "bad", "job")
    assert good.publish(source, "job") == digest
    for place in (tmp_path / "bad").rglob("*"):
        if place.is_file() and place.stat().st_size:
            place.write_bytes(bytes(place.stat().st_size))
    with caplog.at_level(logging.WARNING, "semisync.cluster.files"):
        download(digest, [bad.url, good.url], tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(source)
    assert "{} is asked no more: it sent wrong bytes".format(bad.url) in caplog.text
    assert good.url not in caplog.text


def test_a_source_with_another_version_is_no_source(node, source, tmp_path):
    other = node()
    digest = make_manifest(source, "job").digest
    (source / "one").write_bytes(b"newer")
    other.publish(source, "job")
    with pytest.raises(BadInput, match="no manifest came at the deadline.*there is no such path"):
        download(digest, [other.url], tmp_path / "copy", deadline=2.0)


def test_a_wrong_key_ends_soon_with_what_the_source_says(node, source, tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "FAILURES", 2)
    root = node()
    digest = root.publish(source, "job")
    with pytest.raises(BadInput, match="no source is left: .*401: the signature is wrong"):
        download(digest, [root.url], tmp_path / "copy", key=b"another key of the same length")


def test_the_deadline_names_each_source_and_what_it_did(node, source, tmp_path):
    gone = node()
    url = gone.url
    gone.close()
    digest = make_manifest(source, "job").digest
    with pytest.raises(BadInput) as error:
        download(digest, [url], tmp_path / "copy", deadline=2.0)
    assert "no manifest came at the deadline" in str(error.value)
    assert "{}: Cannot connect to host".format(url) in str(error.value)


def test_a_source_that_fails_now_and_then_is_asked_again(node, source, tmp_path, monkeypatch):
    whole = Client.chunk
    root = node()
    digest = root.publish(source, "job")
    monkeypatch.setattr(Client, "chunk", lossy(whole))
    download(digest, [root.url], tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(source)


def lossy(whole):
    """`Client.chunk` that fails for the first request of every third chunk."""
    seen = set()

    async def chunk(self, source, digest, wanted):
        if wanted.number % 3 == 0 and wanted.number not in seen:
            seen.add(wanted.number)
            raise SourceFailed("the connection broke")
        return await whole(self, source, digest, wanted)

    return chunk


def test_a_full_disk_is_said_before_and_while_it_fills(node, source, tmp_path, monkeypatch):
    root = node()
    digest = root.publish(source, "job")
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(1000))
    with pytest.raises(BadInput, match="bytes are missing and its disk has room for 1,000"):
        download(digest, [root.url], tmp_path / "copy")
    monkeypatch.undo()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(BadInput, match="cannot be written: No space left on device"):
        download(digest, [root.url], tmp_path / "copy")


class Usage:
    def __init__(self, free):
        self.free = free


def test_one_process_at_a_time_downloads_into_a_folder(node, source, tmp_path):
    root = node()
    digest = root.publish(source, "job")
    parts = tmp_path / "copy" / PARTS / digest
    parts.mkdir(parents=True)
    with open(str(parts / "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process downloads the same files into it"):
            download(digest, [root.url], tmp_path / "copy")


def test_an_older_file_is_there_until_the_new_one_is_whole(node, source, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "model.ckpt").write_bytes(b"older")
    interrupted(node, source, copy, 10)
    assert (copy / "model.ckpt").read_bytes() == b"older"
    interrupted(node, source, copy, 12)
    assert (copy / "model.ckpt").read_bytes() == (source / "model.ckpt").read_bytes()


@pytest.mark.parametrize(
    ("digest", "sources", "sentence"),
    [
        ("../x", ["http://a:1"], "is not a digest"),
        ("0" * 64, [], "no source"),
        ("0" * 64, ["https://a:1"], "http://HOST:PORT was expected"),
        ("0" * 64, ["http://a:1/path"], "is not a source"),
        ("0" * 64, ["file:///etc"], "is not a source"),
    ],
)
def test_a_call_that_has_no_meaning_is_refused(node, tmp_path, digest, sources, sentence):
    with pytest.raises(UsageError, match=sentence):
        download(digest, sources, tmp_path, deadline=1)


def test_a_place_that_cannot_be_listened_to_is_refused(node):
    port = int(node().url.rpartition(":")[2])
    before = threading.active_count()
    with pytest.raises(UsageError, match="cannot listen on 127.0.0.1:{}".format(port)):
        node(port=port)
    assert threading.active_count() == before


def test_over_tls_both_sides_show_a_certificate_of_the_jobs_authority(
    node, source, tmp_path, certificates
):
    ours, stranger = (
        files.Tls(*[str(certificates / (name + suffix)) for suffix in (".crt", ".key", ".crt")])
        for name in ("ours", "other")
    )
    root = node(tls=ours)
    digest = root.publish(source, "job")
    assert root.url.startswith("https://")
    download(digest, [root.url], tmp_path / "copy", tls=ours)
    assert contents(tmp_path / "copy") == contents(source)
    with pytest.raises(BadInput, match="certificate verify failed"):
        download(digest, [root.url], tmp_path / "none", deadline=2.0, tls=stranger)
    with pytest.raises(UsageError, match="no TLS with"):
        node(tls=files.Tls("none.pem", "none.key", "none.pem"))


def test_a_place_that_takes_no_file_is_named(node, source, tmp_path):
    root = node()
    digest = root.publish(source, "job")
    with pytest.raises(BadInput, match="/proc/copy cannot be written: No such file"):
        download(digest, [root.url], "/proc/copy")


def test_a_host_that_no_url_can_have_is_refused(node):
    with pytest.raises(UsageError, match="'a b/c' is not a host by which others could reach it"):
        node(host="a b/c", bind="127.0.0.1")
