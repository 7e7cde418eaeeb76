"""Missing values become what the schema says; what does not fit it is refused, with its place."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrate.data import Column, TextFormat, open_data
from semisync.common.errors import BadInput, UsageError

NAN = float("nan")


def only_batch(path, column, text=None, rows=3):
    (batch,) = open_data(path, [column], rows, last="drop", text=text)
    return batch


def parquet(tmp_path, values, kind=None):
    pq.write_table(pa.table({"x": pa.array(values, kind)}), tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def text(tmp_path, fields):
    path = tmp_path / "log.tsv"
    path.write_bytes(b"a\tx\n" + b"".join(b"0\t%s\n" % field for field in fields))
    return path


def jagged(tensor):
    return [part.tolist() for part in tensor["x"].to_dense()]


@pytest.mark.parametrize(
    "values, kind, default, expected",
    [
        ([1, None, 3], None, None, [[1], [], [3]]),
        ([1, None, 3], None, -7, [[1], [-7], [3]]),
        ([[1, 2], None, []], pa.list_(pa.int32()), None, [[1, 2], [], []]),
        ([[1, 2], None, []], pa.large_list(pa.int8()), 5, [[1, 2], [5], []]),
        ([[], None, None], pa.list_(pa.int64()), 5, [[], [5], [5]]),
        ([None, None, None], pa.int64(), None, [[], [], []]),
        ([[-(2**63)], [2**63 - 1], []], pa.list_(pa.int64()), None, [[-(2**63)], [2**63 - 1], []]),
        ([2**63 - 1, 0, 1], pa.uint64(), None, [[2**63 - 1], [0], [1]]),
    ],
)
def test_ids_of_any_integer_type_keep_their_values(tmp_path, values, kind, default, expected):
    path = parquet(tmp_path, values, kind)
    batch = only_batch(path, Column("x", "ids", default=default))
    assert jagged(batch.sparse) == expected


@pytest.mark.parametrize(
    "fields, default, expected",
    [
        ([b"1|-2", b"", b"3"], None, [[1, -2], [], [3]]),
        ([b"1|-2", b"", b"3"], 9, [[1, -2], [9], [3]]),
        ([b'"1|2"', b'""', b"007"], 9, [[1, 2], [9], [7]]),
        (
            [b"9223372036854775807|-9223372036854775808", b"0", b"-0"],
            None,
            [[2**63 - 1, -(2**63)], [0], [0]],
        ),
    ],
)
def test_ids_in_text_keep_their_values(tmp_path, fields, default, expected):
    batch = only_batch(text(tmp_path, fields), Column("x", "ids", default=default))
    assert jagged(batch.sparse) == expected


def test_a_weight_that_text_leaves_out_is_1(tmp_path):
    batch = only_batch(text(tmp_path, [b"1:0.5|2", b"", b"-3:1e-3"]), Column("x", "weighted"))
    assert batch.weighted["x"].values().tolist() == [1, 2, -3]
    assert batch.weighted["x"].weights().tolist() == [0.5, 1.0, np.float32(1e-3)]
    assert batch.weighted["x"].lengths().tolist() == [2, 0, 1]


@pytest.mark.parametrize("written", [repr, "{:.9g}".format, "{:.25f}".format, "{:e}".format])
def test_numbers_in_text_are_the_nearest_float32(tmp_path, written):
    random = np.random.RandomState(0)
    numbers = np.ldexp(random.randn(2000), random.randint(-40, 40, 2000))
    fields = [written(float(number)) for number in numbers]
    path = text(tmp_path, [field.encode() for field in fields])
    batch = only_batch(path, Column("x", "dense"), rows=2000)
    assert batch.dense[:, 0].tolist() == np.array(fields, np.float32).tolist()


@pytest.mark.parametrize(
    "values, column, expected",
    [
        ([0.5, None, NAN], Column("x", "dense", default=2), [[0.5], [2], [2]]),
        (
            [[1, 2], None, [3, 4]],
            Column("x", "dense", default=0, width=2),
            [[1, 2], [0, 0], [3, 4]],
        ),
        ([True, False, None], Column("x", "dense", default=-1), [[1], [0], [-1]]),
        ([1e300, -1e300, 2**24 + 1], Column("x", "dense"), [[np.inf], [-np.inf], [2**24]]),
    ],
)
def test_dense_columns_take_the_default_for_what_is_missing(tmp_path, values, column, expected):
    assert only_batch(parquet(tmp_path, values), column).dense.tolist() == expected


@pytest.mark.parametrize("default", ["", "none"])
def test_strings_are_bytes_and_the_default_where_missing(tmp_path, default):
    path = parquet(tmp_path, ["a", None, "ü"])
    batch = only_batch(path, Column("x", "string", default=default))
    assert batch.strings["x"].to_pylist() == [b"a", default.encode(), b"\xc3\xbc"]
    batch = only_batch(text(tmp_path, [b"a|b", b"", b"\xff"]), Column("x", "strings"))
    assert batch.strings["x"].to_pylist() == [[b"a", b"b"], [], [b"\xff"]]


@pytest.mark.parametrize(
    "values, kind, column, sentence",
    [
        ([2**63, 0, 0], pa.uint64(), Column("x", "ids"), "row 1 is 9223372036854775808; int64"),
        (
            [[], [0, 2**31], []],
            None,
            Column("x", "ids", "int32"),
            "row 2 is 2147483648; int32 is exp",
        ),
        ([0, 0, -(2**40)], None, Column("x", "ids", "int32"), "row 3 is -1099511627776; int32 is"),
        ([[1], [2, None], []], None, Column("x", "ids"), "row 2 has an empty value in its list"),
        ([0.5, 1, 2], None, Column("x", "ids"), "row 1 is 0.5; int64 is expected"),
        (["1", "b", "c"], None, Column("x", "ids"), "row 2 is 'b'; int64 is expected"),
        ([[[1]], [], []], None, Column("x", "ids"), "holds list<.*>; numbers, text or lists of"),
        ([1, None, 2], None, Column("x", "dense"), "row 2 is empty; every row needs a value: --fi"),
        ([1, 2, NAN], None, Column("x", "label"), "row 3 is nan; every row needs a value"),
        ([[1], [NAN], []], None, Column("x", "numbers"), "row 2 has an empty value in its list"),
        (["a", None, "b"], None, Column("x", "string"), "row 2 is empty; every row needs a value"),
        (
            [[1, 2], [3], []],
            None,
            Column("x", "dense", width=2),
            "row 2 has 1 values, expected 2",
        ),
        ([[1, 2], None, []], None, Column("x", "dense", width=2), "row 2 is empty"),
        ([1, 2, 3], None, Column("x", "dense", width=2), "has one value in each row; 2 are"),
        (["1", "b", "c"], None, Column("x", "dense"), "row 2 is 'b'; a number is expected"),
        ([1, 2, None], None, Column("x", "key"), "row 3 is empty; every row needs a value"),
        (["1", "b", "3"], None, Column("x", "key", "int64"), "row 2 is 'b'; int64 is expected"),
        ([1, 2, 3], None, Column("x", "string"), "holds int64, but the model takes text"),
        ([1, 2, 3], None, Column("x", "strings"), "holds int64, but the model takes text"),
        ([[1], [2], [3]], None, Column("x", "weighted"), "holds list<.*lists of .id, weight., or"),
        ([1, 2, 3], None, Column("y", "ids"), "has no column 'y'; it has: x"),
        *(
            (
                [[("a", 1)], [], []],
                pa.map_(pa.string(), pa.int64()),
                Column("x", kind),
                "x' holds map<",
            )
            for kind in ("ids", "dense", "numbers", "strings")
        ),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_with_its_place(
    tmp_path, values, kind, column, sentence
):
    path = parquet(tmp_path, values, kind)
    with pytest.raises(BadInput, match=f"{path}.*{sentence}"):
        only_batch(path, column)


@pytest.mark.parametrize(
    "field, column, sentence",
    [
        (b"1|x", Column("x", "ids"), "row 2 is 'x'; int64 is expected"),
        (b"9223372036854775808", Column("x", "ids"), "'9223372036854775808'; int64 is expected"),
        (b"1|", Column("x", "ids"), "row 2 is ''; int64 is expected"),
        (b"1.0", Column("x", "ids"), "row 2 is '1.0'; int64 is expected"),
        (b"1|2", Column("x", "key", "int64"), "row 2 is '1|2'; int64 is expected"),
        (b"1:", Column("x", "weighted"), "ids, each perhaps with ':' and a weight expected"),
        (b"1:0.5x|2", Column("x", "weighted"), "row 2 is '0.5x'; a number is expected"),
        (b"0,5", Column("x", "dense"), "row 2 is '0,5'; a number is expected"),
        (b"", Column("x", "dense"), "row 2 is empty"),
        (b"1|2", Column("x", "dense", width=3), "row 2 has 2 values, expected 3"),
        (b"\xff", Column("x", "key"), "UTF-8 expected"),
        (b'"a', Column("x", "string"), "row 2 has a quote that is not closed in its line"),
        (b'"a"b', Column("x", "string"), "text whose quotes are closed expected"),
        (b"0\t1", Column("x", "ids"), r"row 2 has 3 fields, expected 2 separated by '\\t'"),
    ],
)
def test_a_field_that_cannot_be_read_is_refused_with_its_place(tmp_path, field, column, sentence):
    good = b"a" if column.kind in ("string", "key") and column.dtype is None else b"1"
    if column.width > 1:
        good = b"1|2|3"
    path = text(tmp_path, [good, field, good])
    with pytest.raises(BadInput, match=sentence.replace("|", "[|]")) as raised:
        only_batch(path, column)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "rows",
    [
        'x,y\n"a\nb",1\n',
        'x,y,z\n1,2,"a\n7,8,b"\n',  # as many fields in either line, in a column that nobody reads
        'x,y\n1,"',
    ],
)
def test_a_line_break_in_quotes_is_noticed(tmp_path, rows):
    path = tmp_path / "log.csv"
    path.write_text(rows)
    with pytest.raises(BadInput, match="row 1 has a quote that is not closed in its line"):
        only_batch(path, Column("x", "string"), rows=1)


@pytest.mark.parametrize("quote", ['"', None])
def test_lines_that_end_with_a_carriage_return_alone_are_refused(tmp_path, quote):
    path = tmp_path / "log.csv"
    path.write_bytes(b"x\r1\r2\r")
    with pytest.raises(BadInput, match="log.csv: lines that end with a carriage return alone are"):
        only_batch(path, Column("x", "ids"), TextFormat(",", quote=quote))


def test_quotes_are_characters_where_the_format_says_so(tmp_path):
    path = text(tmp_path, [b'"a', b'b"', b'"'])
    written = TextFormat("\t", quote=None)
    batch = only_batch(path, Column("x", "string"), written)
    assert batch.strings["x"].to_pylist() == [b'"a', b'b"', b'"']


@pytest.mark.parametrize(
    "column, sentence",
    [
        (Column("x", "sparse"), "is of kind 'sparse'; there are: dense, ids"),
        (Column("x", "ids", "float32"), "has dtype 'float32'; of kind ids: int64 or int32"),
        (Column("x", "key", type="string"), "has type 'string'; of kind key: none"),
        (Column("x", "ids", type="text"), "has type 'text'; of kind ids: bool, int32, int64"),
        (Column("x", "dense", "string"), "has dtype 'string'; of kind dense: float32 or float64"),
        (Column("x", "dense", "int64"), "is of int64, but a Batch has float32"),
        (Column("x", "ids", width=2), "only a dense column is wider"),
        (Column("x", "dense", default="0"), "has the default '0', which is not of its kind"),
        (Column("x", "ids", default=2**63), "which does not fit it"),
        (Column("x", "weighted", default=1), "is a row without any"),
    ],
)
def test_a_schema_without_meaning_is_refused(column, sentence):
    with pytest.raises(UsageError, match=sentence):
        open_data("log.parquet", [column], 1, last="drop")


@pytest.mark.parametrize("null", ["", "a\tb", "\n"])
def test_a_mark_of_missing_values_that_no_field_can_be_is_refused(null):
    with pytest.raises(UsageError, match="null of a text format is .*, which cannot be a field"):
        TextFormat(separator="\t", null=null).checked()


def test_a_column_goes_through_json():
    columns = [Column("x", "dense", default=0.5, width=3), Column("y", "ids", "int32")]
    saved = json.loads(json.dumps([column.to_json() for column in columns]))
    assert saved[1] == {"name": "y", "kind": "ids", "dtype": "int32"}
    assert [Column(**one) for one in saved] == columns
