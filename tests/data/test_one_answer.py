"""Every command takes the same files, and refuses the others with the same sentence."""

import gzip

import pyarrow as pa
import pytest

from migrate.data import Column, open_data
from migrate.scoring.model import Input
from migrate.scoring.run import batches as scored
from migrate.storage import sources
from parity.io.batches import batches
from semisync.common.errors import BadInput
from tests.support.score_files import write


def by_parity(path):
    return [x for batch in batches(path, ["x"]) for x in batch.numbers("x").tolist()]


def by_score(path):
    wanted = [Input("x", "x", "float32", False, (None,))]
    return [x for _, (found,) in scored(path, wanted) for x in found.values.tolist()]


def by_training(path):
    schema = [Column("x", "dense")]
    return [
        x for batch in open_data(path, schema, 1, last="drop") for x in batch.dense[:, 0].tolist()
    ]


READERS = pytest.mark.parametrize("read", [by_parity, by_score, by_training])


@READERS
@pytest.mark.parametrize(
    "name, content",
    [
        ("a.csv", b"y, x\n1,0.5\n0,0.25\n"),
        ("a.csv", b'\n\r\n"x" ,y\r\n\r\n0.5,1\r\n0.25,"a,b"'),
        ("A.TSV", b"\xef\xbb\xbfx\ty\n0.5\t\n0.25\t7\n"),
        ("a.csv.gz", gzip.compress(b"x\n0.5\n", mtime=0) + gzip.compress(b"0.25\n", mtime=0)),
        ("a.jsonl", b'\xef\xbb\xbf{"x": 0.5}\n\n{"x": 0.25, "y": 1}'),
    ],
)
def test_a_file_is_read_alike_by_every_command(tmp_path, read, name, content):
    (tmp_path / name).write_bytes(content)
    assert read(str(tmp_path / name)) == [0.5, 0.25]


@READERS
@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("a.csv", b"", r"is empty \(0 bytes\)"),
        ("a.dat", b"x,y\n1,2\n", "is neither Parquet .* nor, by its name, a .csv, .tsv, .jsonl or"),
        (
            "a.csv",
            gzip.compress(b"x\n1\n", mtime=0),
            "is compressed, but its name does not end with .gz",
        ),
        ("a.csv.gz", b"x\n1\n", "cannot be read, it may be cut short or corrupt"),
        ("a.csv", b"x;y\n1;2\n", "is separated by semicolons, so that its numbers may have"),
        ("a.csv", b"x\ty\n1\t2\n", "is separated by tabs; name it .tsv"),
        ("a.csv", b"x,y\r1,2\r", "lines that end with a carriage return alone are not supported"),
        ("a.csv", b"x,x\n1,2\n", "has 2 columns named 'x'; rename them"),
        ("a.csv", b"y,z\n1,2\n", "has no column 'x'; it has: y, z"),
        ("a.csv", "x,y\n1,2\n".encode("utf-16"), "its header is not UTF-8"),
        (
            "a.csv",
            b"x,y\n1,2\n\n1,2,3\n",
            "row 2 has 3 fields, expected 2 separated by",
        ),
        ("a.csv", b"x,y\n1,2\n7\n", "row 2 has 1 fields, expected 2 separated by ',': '7'"),
        ("a.csv", b"x\n" + 4 * b"0.125\n" + b"0.1", "the file seems to be cut"),
        ("a.jsonl", b'{"x": 1}\n{"x": "a"}\n', "changed from number to string"),
        ("a.jsonl", b'{"x": 1, "x": 2}\n', "was specified twice"),
    ],
)
def test_a_file_is_refused_alike_by_every_command(tmp_path, read, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=f"{tmp_path / name}.* {sentence}"):
        read(str(tmp_path / name))


@pytest.mark.parametrize("suffix", [".tfrecord", ".jsonl", ".tsv"])
def test_a_packed_file_is_unpacked_once_to_be_listed_and_once_to_be_read(
    tmp_path, monkeypatch, suffix
):
    write(tmp_path / f"a{suffix}", pa.table({"x": [0.5, 0.25]}))
    (tmp_path / f"a{suffix}.gz").write_bytes(gzip.compress((tmp_path / f"a{suffix}").read_bytes()))
    (tmp_path / f"a{suffix}").unlink()
    opened, streamed = [], sources.streamed
    monkeypatch.setattr(sources, "streamed", lambda path: opened.append(path) or streamed(path))
    data = open_data(tmp_path, [Column("x", "dense")], 2, last="drop")
    assert len(opened) == 1
    assert [batch.dense.tolist() for batch in data] == [[[0.5], [0.25]]]
    assert len(opened) == 2
