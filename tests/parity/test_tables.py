"""`parity.compare` of tables: the figures of their columns, whatever library holds them."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import parity
from semisync.cli import main
from semisync.common.errors import BadInput, UsageError
from tests.parity.kinds import columns

ROWS = 600
LABELS, OLD, NEW = columns(rows=ROWS)
USER = np.char.add("u", (np.arange(ROWS) // 6).astype(str))
TABLE = pa.table(
    {"id": np.arange(ROWS), "y": LABELS.astype(int), "old": OLD, "new": NEW, "user": USER}
).append_column("day", pa.array(np.arange(ROWS) % 3))
NAMES = {"label": "y", "baseline": "old", "candidate": "new"}


class Streamed:
    """A table of a library that nobody has heard of: only Arrow's stream."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def duck(table):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    return duckdb.connect().from_arrow(table)


def polars(table):
    return pytest.importorskip("polars", reason="polars is not installed").from_arrow(table)


LIBRARIES = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas().set_index(np.arange(len(table)) * 7),
    "pandas on Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": polars,
    "duckdb": duck,
    "arrays": lambda table: {name: table[name].to_numpy() for name in table.column_names},
    "any": Streamed,
}


def same(found, expected):
    for name in ("verdict", "delta", "standard_error", "interval", "clusters", "rows"):
        assert getattr(found, name) == getattr(expected, name), name


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gives_the_figures_of_the_columns(library):
    expected = parity.compare(LABELS, OLD, NEW, clusters=USER)
    table = LIBRARIES[library](TABLE)
    found = parity.compare(table, **NAMES, key="id", group="user", day="day", slices=["day"])
    same(found, expected)
    assert [day.name for day in found.days.days] == ["0", "1", "2"]
    assert [name for name, _ in found.slices] == ["day"]


def test_a_path_is_a_table_too(tmp_path):
    path = tmp_path / "scores.parquet"
    pyarrow.parquet.write_table(TABLE, path)
    for given in (path, str(path)):
        same(parity.compare(given, **NAMES), parity.compare(LABELS, OLD, NEW))


@pytest.mark.few(4)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("keys", ["id", ["user", "place"]])
def test_two_tables_are_joined_by_one_or_several_keys(library, keys):
    table = TABLE.append_column("place", pa.array(np.arange(ROWS) % 6))
    named = [keys] if isinstance(keys, str) else keys
    order = np.random.default_rng(0).permutation(ROWS)
    old, new = table.drop_columns(["new"]), table.select([*named, "new"]).take(order)
    make = LIBRARIES[library]
    found = parity.compare((make(old), make(new)), **NAMES, key=keys)
    same(found, parity.compare(LABELS, OLD, NEW))
    with pytest.raises(BadInput, match="the rows do not match by key .* 5 only in the baseline's"):
        parity.compare((make(old), make(new.slice(5))), **NAMES, key=keys)
    missed = parity.compare((old, new.slice(5)), **NAMES, key=keys, allow_misses=True)
    assert missed.rows == ROWS - 5


def test_numbers_and_text_of_several_keys_are_the_same_as_of_one():
    wide = TABLE.append_column("a", pa.array(np.arange(ROWS) // 2))
    wide = wide.append_column("b", pa.array(np.arange(ROWS) % 2))
    texts = wide.set_column(wide.column_names.index("a"), "a", wide["a"].cast(pa.string()))
    found = parity.compare((wide, texts.select(["a", "b", "new"])), **NAMES, key=["a", "b"])
    same(found, parity.compare(LABELS, OLD, NEW))
    with pytest.raises(BadInput, match="the table: column 'a' is not a key: 300 rows repeat"):
        parity.compare(wide, **NAMES, key="a")
    parity.compare(wide, **NAMES, key=["a", "b"])


@pytest.mark.few(2)
@pytest.mark.parametrize("library", LIBRARIES)
def test_without_a_key_rows_in_another_order_are_told(library):
    make, order = LIBRARIES[library], np.random.default_rng(0).permutation(ROWS)
    old, new = TABLE.drop_columns(["new"]), TABLE.select(["user", "new"])
    same(parity.compare((make(old), make(new)), **NAMES), parity.compare(LABELS, OLD, NEW))
    assert not parity.compare((make(old), make(new)), **NAMES).warnings
    found = parity.compare((make(old), make(new.take(order))), **NAMES)
    assert found.warnings[0].startswith("Both sides have the same values in column 'user', in anot")
    with pytest.raises(BadInput, match="as many are 1 on both sides, so that the rows stand in an"):
        parity.compare((make(old), make(TABLE.select(["y", "new"]).take(order))), **NAMES)
    with pytest.raises(BadInput, match="has 600 rows and the candidate's table 599; without a key"):
        parity.compare((make(old), make(new.slice(1))), **NAMES)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["y", "old", "user", "day"])
def test_a_missing_value_is_named_by_row_and_column(library, name):
    values = TABLE[name].to_pylist()
    values[10] = None
    table = TABLE.set_column(TABLE.column_names.index(name), name, pa.array(values))
    given = LIBRARIES[library](table)
    with pytest.raises(BadInput, match=f"the table: column '{name}' in row 11 is (empty|nan)"):
        parity.compare(given, **NAMES, group="user", day="day")
    if name == "user":
        found = parity.compare(given, **NAMES, group="user", fill={"user": "nobody"})
        assert found.clusters == 101


def test_tables_hold_decimals_text_and_moments():
    moments = pa.array(
        np.datetime64("2024-05-01T01:00", "s") + np.arange(ROWS) * np.timedelta64(2, "h")
    )
    table = pa.table(
        {
            "y": np.where(LABELS, "true", "false"),
            "old": [decimal.Decimal(str(score)) for score in OLD],
            "new": [str(score) for score in NEW],
            "at": moments,
        }
    )
    found = parity.compare(table, **NAMES, day="at")
    assert found.delta == pytest.approx(parity.compare(LABELS, OLD, NEW).delta)
    assert len(found.days.days) == ROWS // 12
    assert found.days.days[0].name == "2024-05-01"


def test_other_columns_may_hold_anything():
    table = TABLE.to_pandas().assign(odd=[1, "a", None] * (ROWS // 3))
    table["new too"] = [object()] * ROWS
    same(parity.compare(table, **NAMES), parity.compare(LABELS, OLD, NEW))
    table["bag"], table["kind"] = [[row % 3] for row in range(ROWS)], pd.Categorical(USER)
    other = table[["new", "odd", "user", "bag"]].assign(kind=table["kind"].to_numpy()[::-1])
    other["kind"] = pd.Categorical(USER)
    same(parity.compare((table, other), **NAMES), parity.compare(LABELS, OLD, NEW))


@pytest.mark.parametrize(
    ("table", "more", "error", "sentence"),
    [
        (
            TABLE,
            {"candidate": "nope"},
            BadInput,
            "the table has no column 'nope'; it has: id, y, o",
        ),
        (TABLE, {"candidate": None}, UsageError, "candidate= must name the table's column"),
        (TABLE, {"label": None}, UsageError, "baseline names a column of a table, whose labels"),
        (TABLE, {"clusters": "user"}, UsageError, "clusters are named by group="),
        (LABELS, {}, BadInput, "the table is ndarray, not a table: pandas, polars, pyarrow"),
        ((TABLE,) * 3, {}, UsageError, "3 tables are given"),
        (TABLE.rename_columns([*"ab", "old", "new", "old", "y"]), {}, BadInput, "2 columns named"),
    ],
)
def test_a_mistake_is_one_sentence(table, more, error, sentence):
    with pytest.raises(error, match=sentence):
        parity.compare(table, **{**NAMES, **more})


@pytest.mark.parametrize("memory", ["4", "0"])
def test_the_command_joins_by_several_keys(tmp_path, monkeypatch, capsys, memory):
    monkeypatch.chdir(tmp_path)
    table = TABLE.append_column("place", pa.array(np.arange(ROWS) % 6))
    order = np.random.default_rng(0).permutation(ROWS)
    pyarrow.parquet.write_table(table, "old.parquet")
    pyarrow.parquet.write_table(table.select(["user", "place", "new"]).take(order), "new.parquet")
    files = ["parity", "old.parquet", "new.parquet", "--label=y", "--baseline-score=old"]
    files += ["--candidate-score=new", "--margin=.2", "--memory", memory, "--out=out"]
    assert main([*files, "--key=user", "--key=place"]) == 0
    out = capsys.readouterr().out
    assert "joined by 'user' and 'place'" in out and "600 rows" in out
    assert main([*files, "--key=user"]) == 3
    assert "column 'user' is not a key: 500 rows repeat" in capsys.readouterr().err


@pytest.mark.long
def test_the_command_warns_of_files_whose_rows_are_in_another_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(TABLE, "old.parquet")
    files = ["parity", "old.parquet", "new.parquet", "--label=y", "--baseline-score=old"]
    files += ["--candidate-score=new", "--margin=.2", "--group=user", "--out=out"]
    pyarrow.parquet.write_table(TABLE.select(["user", "new"]), "new.parquet")
    assert main(files) == 0
    assert "another order" not in capsys.readouterr().out
    order = np.random.default_rng(0).permutation(ROWS)
    pyarrow.parquet.write_table(TABLE.select(["user", "new"]).take(order), "new.parquet")
    main(files)
    assert "Warning: Both sides have the same values in column 'user'" in capsys.readouterr().out
    assert main([*files, "--memory=0"]) == 3
    assert "need --key" in capsys.readouterr().err
