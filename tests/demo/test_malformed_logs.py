import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semisync.common.errors import BadInput
from tests.demo.logs import criteo_line, quietly

GOOD = criteo_line()


def refused(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput) as caught:
        quietly(path)
    sentence = str(caught.value)
    assert "\n" not in sentence and str(path) in sentence
    return sentence


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(0, 45), st.booleans())
def test_a_row_of_another_length_is_named(tmp_path_factory, line, columns, header):
    columns += columns >= 40
    row = "\t".join(["1"] * columns) + "\n" if columns > 1 else "1\n"
    names = "label\t" + "\t".join(f"f{i}" for i in range(39)) + "\n"
    lines = [GOOD] * 40
    lines.insert(line - 1, row)
    text = names * header + "".join(lines)
    found = refused(tmp_path_factory.mktemp("log") / "log.csv", text)
    assert f"log.csv: row {line + header} has {max(columns, 1)} fields, expected 40" in found


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 40),
    st.text("0123456789xyz.-", min_size=1).filter(lambda text: text not in {"0", "1"}),
)
def test_a_label_other_than_0_and_1_names_its_row(tmp_path_factory, line, label):
    lines = [GOOD] * 40
    lines[line - 1] = criteo_line(label)
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    if label in {"0.0", "1.0"}:
        path.write_text("".join(lines))
        assert quietly(path).rows == 40
    else:
        found = refused(path, "".join(lines))
        assert f"log.tsv row {line}: column 'label' holds " in found
        assert "expected 0 or 1" in found


@pytest.mark.parametrize("value", ["abc", "1.5", "--1", "0x10", "1 2"])
def test_a_count_that_does_not_parse_names_its_row(tmp_path, value):
    text = GOOD * 16 + criteo_line(1, ["1", value, *["3"] * 11]) + GOOD
    found = refused(tmp_path / "log", text)
    assert f"log row 17: column 'I2' holds '{value}', expected a whole number" in found


def test_the_row_is_right_after_blank_lines_quotes_and_crlf(tmp_path):
    start = '\ufeff"la""bel",b,click\r\n"x,1",2,0\r\n\r\n\r\n'
    assert "row 2 has 2 fields, expected 3" in refused(tmp_path / "a.csv", start + "1,2\r\n")
    assert "row 2: column 'click' holds '2'" in refused(tmp_path / "a.csv", start + "1,2,2\r\n")
    assert "row 1 has 4 fields" in refused(tmp_path / "a.csv", start.replace('"x,1"', "x,1"))


def test_a_stray_text_among_decimal_numbers_names_its_row(tmp_path):
    rows = [f"{i % 2},{i / 7},a{i % 3}" for i in range(300)]
    rows[200] = "1,twelve,a"
    found = refused(tmp_path / "log.csv", "\n".join(["label,price,name", *rows]))
    assert "row 201: column 'price' holds 'twelve', expected a number" in found


def test_a_time_that_cannot_be_read_names_its_row(tmp_path):
    rows = ["0,2020-01-01 00:00:00,a", "1,yesterday,b"]
    found = refused(tmp_path / "log.csv", "\n".join(["label,time,name", *rows]))
    assert "row 2: column 'time' holds 'yesterday', expected a time" in found
    rows[1] = "1,,b"
    found = refused(tmp_path / "log.csv", "\n".join(["label,time,name", *rows]))
    assert "row 2: column 'time' is empty" in found


@pytest.mark.parametrize("after", ["", "1,c\n" * 50, '1,c"\n' * 3])
def test_a_missing_quote_never_swallows_rows(tmp_path, after):
    found = refused(tmp_path / "log.csv", 'label,a\n0,a\n1,"b\n' + "0,x\n" + after)
    assert "log.csv: row 2 has a quote that is not closed in its line" in found


def test_text_that_is_not_utf8_names_its_row(tmp_path):
    found = refused(tmp_path / "log.csv", "label,a\n0,a\n1,été\n".encode("latin-1"))
    assert "log.csv: row 2 is not UTF-8" in found


@pytest.mark.parametrize(
    "content, sentence",
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        (np.random.default_rng(0).bytes(5000), "is not text"),
        (b"\x1f\x8b\x08" + bytes(99), "its name does not end with .gz"),
        ("label,a\n", "has no rows"),
        ("label,a", "has no rows"),
        ("label\n0\n1\n", "no column to learn from"),
        ("a,b\n1,2\n", "has no column label, click, clicked, target or y; it has 'a', 'b'"),
        ("label,a,a\n0,1,2\n", "two columns are named 'a'"),
        (GOOD.split("\t", 1)[1] * 3, "has no column label"),
        (b"PAR1" + bytes(100), "may be cut short or corrupt"),
        ("label,time,a\n0,-5,1\n1,3,2\n", "neither days, dates"),
    ],
)
def test_a_file_that_is_no_log_is_refused_in_a_sentence(tmp_path, content, sentence):
    assert sentence in refused(tmp_path / "log.csv", content)


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path, write_page_checksum=True)
    return path.read_bytes()


def test_a_malformed_row_of_parquet_is_named(tmp_path):
    path = tmp_path / "log.parquet"
    labels = [0] * 20
    labels[16] = 2
    found = refused(path, parquet(path, label=labels, a=list(range(20))))
    assert "log.parquet row 17: column 'label' holds '2'" in found
    labels[16] = None
    found = refused(path, parquet(path, label=labels, a=list(range(20))))
    assert "row 17: column 'label' holds ''" in found
    found = refused(path, parquet(path, label=[[0], [1]], a=[1, 2]))
    assert "column 'label' holds list<" in found


def test_damaged_parquet_is_refused(tmp_path):
    path = tmp_path / "log.parquet"
    rng = np.random.default_rng(0)
    whole = parquet(path, label=rng.integers(0, 2, 4000), a=rng.integers(0, 2**60, 4000))
    for cut in (0, 3, 4, 11, len(whole) // 2, len(whole) - 1):
        refused(path, whole[:cut])
    for place in range(200, len(whole) // 2, len(whole) // 20):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        refused(path, bytes(damaged))


def test_a_path_without_a_log_is_refused(tmp_path):
    for path, sentence in ((tmp_path / "nope", "does not exist"), (tmp_path, "holds no file")):
        with pytest.raises(BadInput, match=sentence):
            quietly(path)
    (tmp_path / "a.csv").write_text("x,y1\n1,2\n")
    with pytest.raises(BadInput, match="none of the 1 files .* has a label column"):
        quietly(tmp_path)
    (tmp_path / "b.csv").write_text("label,x\n1,2\n")
    (tmp_path / "c.csv").write_text("click,x\n1,2\n")
    with pytest.raises(BadInput, match="different formats or labels"):
        quietly(tmp_path)
