"""Small files of rows of a stranger's that unfold into gigabytes."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.io.batches import read_columns
from parity.io.formats.parquet import Parquet
from semisync.common.errors import BadInput
from semisync.storage import unfolding
from semisync.storage.sources import unpacked
from tests.support import limited

ROWS = 200
PARITY = ["--label", "y", "--baseline-score", "p", "--candidate-score", "q", "--out", "out"]


def dictionary(length, rows=ROWS):
    """A column of text that has one value, in all rows."""
    places = pa.array([0] * rows, pa.int32())
    return pa.DictionaryArray.from_arrays(places, pa.array(["x" * length]))


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """A file of 5 kB whose key takes 20 GB."""
    folder = tmp_path_factory.mktemp("bomb")
    scores = [0.1 * row for row in range(ROWS)]
    labels = [row % 2 for row in range(ROWS)]
    table = {"k": dictionary(100_000_000), "y": labels, "p": scores, "q": scores}
    pq.write_table(pa.table(table), folder / "bomb.parquet", compression="zstd")
    assert (folder / "bomb.parquet").stat().st_size < 10_000
    return folder


@pytest.mark.long
def test_text_that_a_dictionary_holds_once_is_measured_before_it_is_repeated(bomb):
    said = limited.refusal("parity", "bomb.parquet", *PARITY, "--group", "k", cwd=bomb)
    assert "bomb.parquet: column 'k' of row group 0" in said
    assert "20,000,000,000" in said
    assert limited.run("parity", "bomb.parquet", *PARITY, cwd=bomb).returncode in (0, 1, 2)


def test_so_is_a_row_group_of_training_data(bomb):
    with pytest.raises(BadInput, match="column 'k' of row group 0"):
        Parquet(str(bomb / "bomb.parquet")).block(0, ["k"])


@pytest.mark.parametrize("kind", ["list", "struct", "plain"])
def test_text_within_lists_and_structs_is_measured_too(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(unfolding, "AT_ONCE", 1 << 20)
    values = dictionary(1 << 18).cast(pa.string())
    if kind == "list":
        values = pa.ListArray.from_arrays(list(range(ROWS + 1)), values)
    elif kind == "struct":
        values = pa.StructArray.from_arrays([values], ["inner"])
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"k": values, "few": dictionary(4)}), path)
    assert len(Parquet(path).block(0, ["few"])) == ROWS
    with pytest.raises(BadInput, match="column 'k' of row group 0"):
        Parquet(path).block(0, ["k"])


def test_a_billion_equal_numbers_are_refused_where_all_are_held(tmp_path, monkeypatch):
    monkeypatch.setattr(unfolding, "AT_ONCE", 1 << 20)
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"y": pa.array([0.5] * (1 << 20), pa.float64())}), path)
    with pytest.raises(BadInput, match="rows.parquet: column 'y' of row group 0"):
        Parquet(path).block(0, ["y"])
    with pytest.raises(BadInput, match="unfolds into more than"):
        read_columns(path, ["y"], [])


def test_a_compressed_file_is_unpacked_in_proportion_to_its_size(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"y,p\n" + b"0" * (40 << 20)))
    assert len(unpacked(str(path))) == 4 + (40 << 20)
    monkeypatch.setattr(unfolding, "AT_ONCE", 1 << 20)
    with pytest.raises(BadInput, match="rows.csv.gz has .* bytes and unfolds into more than"):
        unpacked(str(path))


def test_too_little_memory_is_a_sentence_and_no_crash(monkeypatch, tmp_path, capsys):
    from semisync.cli import main

    def exhausted(_):
        raise MemoryError("Unable to allocate 8.00 GiB")

    (tmp_path / "m").write_bytes(b"")
    monkeypatch.setattr("semisync.commands.inspect.run", exhausted)
    assert main(["inspect", str(tmp_path / "m")]) == 3
    said = capsys.readouterr().err
    assert "takes more memory than this process may have (Unable to allocate 8.00 GiB)" in said
    assert len(said.splitlines()) == 1
