"""Every command takes the same files, and refuses the others with the same sentence."""

import gzip
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pytest
import torch

from migrate.data import Column, TextFormat, open_data
from migrate.runtime.interface import Input as ModuleInput
from migrate.scoring.model import Input
from migrate.scoring.run import Reading
from migrate.scoring.run import batches as scored
from migrate.training.reading import reading_of
from parity.io.batches import batches
from semisync.common.errors import BadInput, UsageError
from semisync.storage import sources
from tests.support.score_files import write


def by_parity(path, text=None):
    return [x for batch in batches(path, ["x"], text=text) for x in batch.numbers("x").tolist()]


def by_score(path, text=None):
    wanted, reading = [Input("x", "x", "float32", False, (None,))], Reading(text=text)
    return [
        x for _, (found,) in scored(path, wanted, reading=reading) for x in found.values.tolist()
    ]


def by_training(path, text=None):
    data = open_data(path, [Column("x", "dense")], 1, last="drop", text=text)
    return [x for batch in data for x in batch.dense[:, 0].tolist()]


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
    "name, content, text",
    [
        ("000000_0", b"0.5\x01a\n0.25\x01\\N\n", TextFormat("\x01", ["x", "y"], quote=None)),
        ("log.txt", b"\xef\xbb\xbf0.5|7;\n\n0.25|8\n", TextFormat("|", ["x", "y"], values=";")),
        ("a.csv", b"y;x\n1;0.5\n2;0.25\n", TextFormat(";")),
        ("a.csv", b"x,y\n0.5,'a,b'\n0.25,\"c\n", TextFormat(quote="'")),
        ("a.csv", b"x,y\n0.5,1\n0.25,2\n", TextFormat(values=";")),
        ("part-0", b"x\ty\n0.5\t1\n0.25\t2\n", TextFormat()),
    ],
)
def test_text_is_read_alike_as_it_is_said_to_be_written(tmp_path, read, name, content, text):
    (tmp_path / name).write_bytes(content)
    assert read(str(tmp_path), text) == [0.5, 0.25]


@READERS
@pytest.mark.parametrize(
    "content, text, sentence",
    [
        (
            b"1\n-\n",
            TextFormat(names=["x"], null="-"),
            "in row 2 is empty; every row needs a value",
        ),
        (
            b"1;2\n3\n",
            TextFormat(";", ["x", "y"]),
            "row 2 has 1 fields, expected 2 separated by ';'",
        ),
        (b"x,y\n1,'a\n", TextFormat(",", quote="'"), "row 1 has a quote that is not closed in its"),
    ],
)
def test_text_that_is_written_otherwise_is_refused_alike(tmp_path, read, content, text, sentence):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(BadInput, match=f"a.txt.* {sentence}"):
        read(str(tmp_path / "a.txt"), text)


@READERS
def test_files_without_rows_need_no_columns(tmp_path, read):
    """As Hive writes them."""
    (tmp_path / "0.csv").write_bytes(b"\n")
    (tmp_path / "0.csv.gz").write_bytes(gzip.compress(b""))
    pyarrow.orc.write_table(pa.table({"other": pa.array([], pa.int64())}), tmp_path / "1.orc")
    write(tmp_path / "2.parquet", pa.table({"x": [0.5, 0.25]}))
    assert read(str(tmp_path)) == [0.5, 0.25]


def test_separators_must_differ_from_what_a_files_name_says(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x,y\n1,2\n")
    for read in (by_parity, by_training):
        with pytest.raises(UsageError, match="one character for two purposes"):
            read(str(tmp_path / "a.csv"), TextFormat(values=","))


def test_decimal_commas_are_read_as_scores_and_refused_when_it_trains(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x;y\n0,5;1\n0,25;2\n")
    text = TextFormat(separator=";", decimal=",")
    assert by_parity(str(tmp_path / "a.csv"), text) == [0.5, 0.25]
    with pytest.raises(UsageError, match="numbers with decimal commas are read as scores alone"):
        by_training(str(tmp_path / "a.csv"), text)


def test_a_missing_value_in_a_list_is_refused_when_it_trains_and_when_it_scores(tmp_path):
    (tmp_path / "0").write_bytes(b"a;b\n-\na;-\n")
    path, text = str(tmp_path / "0"), TextFormat(names=["x"], values=";", null="-")
    for wanted in (b"a;b\n-\na;-\n", b"a;b\n-\na;c\n"):
        (tmp_path / "0").write_bytes(wanted)
        reading = Reading(lists=["x"], text=text)
        try:
            ((_, (given,)),) = scored(path, [Input("x", "x", "bytes", True, None)], (), reading)
            (batch,) = open_data(path, [Column("x", "strings")], 3, last="drop", text=text)
        except BadInput as error:
            assert "column 'x' in row 3 has an empty value in its list" in str(error)
            with pytest.raises(BadInput, match="'x' in row 3 has an empty value in its list"):
                list(open_data(path, [Column("x", "strings")], 3, last="drop", text=text))
    assert given.lengths.tolist() == [2, 0, 2]
    assert batch.strings["x"].to_pylist() == [[b"a", b"b"], [], [b"a", b"c"]]


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
        ("a.csv", b"x;y\n1;2\n", r"""by semicolons; --text '\{"separator": ";"\}' \(text= in"""),
        (
            "a.csv",
            b"x;y\n1;0,5\n",
            r"""and has decimal commas; --text '\{"separator": ";", "decimal": ","\}'""",
        ),
        ("a.csv", b"x\ty\n1\t2\n", r"""by tabs; --text '\{"separator": "\\t"\}'"""),
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
        ("a.csv", b'x,y\n\n1,a\n2,"b\n3,c\n4,"\n5,d\n', "row 2 has a quote that is not closed in"),
        ("a.csv", b'"x","y"\r\n1,"a""b"\r\n2,"c\r\n"\r\n', "row 2 has a quote that is not closed"),
        ("a.jsonl", b'{"x": 1}\n{"x": "a"}\n', "changed from number to string"),
        ("a.jsonl", b'{"x": 1, "x": 2}\n', "was specified twice"),
    ],
)
def test_a_file_is_refused_alike_by_every_command(tmp_path, read, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=f"{tmp_path / name}.* {sentence}"):
        read(str(tmp_path / name))


@READERS
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize(
    "values",
    [
        ["0.5", "0.25"],
        [" 0.5", "0.25 "],
        [0.5, 0.25],
        [[0.5], [0.25]],
        [Decimal("0.50"), Decimal("0.25")],
        pa.array(["0.5", "0.25"]).dictionary_encode(),
        pa.array([0.5, 0.25]).dictionary_encode(),
        pa.array([b"0.5", b"0.25"]),
        pa.array(["0.5", "0.25"], pa.string_view()),
        pa.array(np.array([0.5, 0.25], np.float16)),
        pa.array([[0.5], [0.25]], pa.list_(pa.float32(), 1)),
        pa.array([[0.5], [0.25]], pa.large_list(pa.float64())),
    ],
)
def test_a_number_is_one_however_it_is_written(tmp_path, read, suffix, values):
    kept = pa.array(values)
    if suffix != ".parquet":
        kept = kept if not isinstance(kept[0].as_py(), (bytes, Decimal)) else kept.cast(pa.string())
        kept = pa.array(
            [str(one).strip("[]") if suffix == ".csv" else one for one in kept.to_pylist()]
        )
    assert read(write(tmp_path / f"a{suffix}", pa.table({"x": kept}))) == [0.5, 0.25]


@READERS
@pytest.mark.parametrize(
    "value, sentence",
    [
        ("NA", "in row 2 is 'NA'; a number is expected"),
        ("1_000", "in row 2 is '1_000'; a number is expected"),
        ("0,5", "in row 2 is '0,5'; a number is expected"),
        (" ", "in row 2 is ' '; a number is expected"),
        (None, "in row 2 is empty; every row needs a value"),
    ],
)
def test_what_is_no_number_is_refused_alike(tmp_path, read, value, sentence):
    table = pa.table({"x": ["1", value], "y": [1, 2]})
    for name in ("a.parquet", "a.jsonl"):
        with pytest.raises(BadInput, match=f"{name}: column 'x' {sentence}"):
            read(write(tmp_path / name, table))
    (tmp_path / "a.tsv").write_text(f"x\ty\n1\t1\n{value or ''}\t2\n")
    with pytest.raises(BadInput, match=f"a.tsv: column 'x' {sentence}"):
        read(str(tmp_path / "a.tsv"))


@READERS
def test_true_and_false_are_1_and_0(tmp_path, read):
    for name, values in (("a.parquet", [True, False]), ("a.jsonl", ["true", "False"])):
        assert read(write(tmp_path / name, pa.table({"x": values}))) == [1, 0]
    (tmp_path / "a.csv").write_text("x\nTRUE\nfalse\n")
    assert read(str(tmp_path / "a.csv")) == [1, 0]


def trained(path, dtype, sparse=False):
    """What `semisync train` gives an input of this dtype."""
    tensors = ["x/indices:0", "x/values:0", "x/shape:0"] if sparse else ["x:0"]
    wanted = {"x": ModuleInput(dtype, (None, None) if sparse else (None,), tensors)}
    reading = reading_of(wanted, {}, {}, None, None)
    (batch,) = open_data(path, reading.schema(), 2, last="drop", convert=reading.batch)
    return batch.inputs["x"][1] if sparse else batch.inputs["x"]


def fed(path, dtype, sparse=False):
    """What `semisync score` gives it."""
    ((_, (found,)),) = scored(path, [Input("x", "x", dtype, sparse, None if sparse else (None,))])
    return torch.tensor(found.values)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
@pytest.mark.parametrize(
    "values",
    [[1, 2], [1.0, 2.0], [0.5, 2], [True, False], ["1", " 2"], ["1", "x"], [1, 2**40], [[1], [2]]],
)
def test_an_input_is_given_the_same_when_it_trains_and_when_it_scores(
    tmp_path, values, dtype, sparse
):
    path = write(tmp_path / "a.parquet", pa.table({"x": values}))
    answers = []
    for given in (trained, fed):
        try:
            found = given(path, dtype, sparse)
            answers.append((found.dtype, found.tolist()))
        except BadInput as error:
            answers.append(re.sub(".*: column", "", str(error)))
    assert answers[0] == answers[1]
    if values == [1, 2**40]:
        assert isinstance(answers[0], str) == (dtype == "int32")


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
