"""YAML and JSON of a stranger's that unfold into more than they are."""

import json

import pytest

from migrate.planning import yaml_text
from semisync.common import json_text
from semisync.common.errors import BadInput
from tests.support import limited

DEEP = "[" * 200_000 + "]" * 200_000


def laughs():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 10)]
    return "\n".join(lines)


def test_aliases_in_yaml_are_refused():
    with pytest.raises(
        BadInput, match=r"x is not YAML: the alias \*a0 is not read, write out what"
    ):
        yaml_text.load(laughs(), "x")
    shared = ["a"]
    assert yaml_text.load(yaml_text.dump({"one": shared, "two": shared}), "x") == {
        "one": shared,
        "two": shared,
    }


def test_yaml_that_takes_minutes_to_parse_is_refused_by_its_length():
    with pytest.raises(BadInput, match="x has 5,000,000 characters of YAML, expected at most"):
        yaml_text.load("- a\n" * 1_250_000, "x")


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 200_000, b"[" * 200_000])
def test_json_that_is_nested_deeply_is_an_error_of_its_value(text):
    with pytest.raises(ValueError, match="nested too deeply"):
        json_text.loads(text)


def test_a_file_of_json_is_a_regular_one_of_a_size_that_was_written(tmp_path):
    with open(tmp_path / "large.json", "w") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="no regular file of at most 67,108,864 bytes"):
        json_text.read(tmp_path / "large.json")
    with pytest.raises(ValueError, match="no regular file"):
        json_text.read("/dev/zero")


@pytest.fixture()
def deep_lines(tmp_path):
    """Rows of which the last is nested deeply, in a column that nobody asks for."""
    rows = [json.dumps({"y": k % 2, "p": 0.1 * k, "q": 0.1 * k, "more": 1}) for k in range(9)]
    row = '{"y": 1, "p": 0.5, "q": 0.5, "more": "]", "z": ' + DEEP + "}"
    (tmp_path / "rows.jsonl").write_text("\n".join([*rows, row, ""]))
    return tmp_path


PARITY = ["--label", "y", "--baseline-score", "p", "--candidate-score", "q", "--out", "out"]


def test_a_line_of_json_that_is_nested_deeply_ends_no_process(deep_lines):
    said = limited.refusal("parity", "rows.jsonl", *PARITY, cwd=deep_lines)
    assert said.endswith("rows.jsonl has a line of JSON that is nested more than 100 deep")


def test_nor_does_one_in_training_data(deep_lines, monkeypatch):
    from migrate.data.formats import json_lines

    path = str(deep_lines / "rows.jsonl")
    with pytest.raises(BadInput, match="nested more than 100 deep"):
        json_lines.survey(path, (deep_lines / "rows.jsonl").stat().st_size)


@pytest.mark.parametrize(
    ("line", "deep"),
    [
        ('{"a": ' + "[" * 99 + "]" * 99 + "}", False),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", True),
        ('{"a": [' + "[1]," * 500 + "[2]]}", False),
        ('{"a": "' + "[" * 500 + '"}', False),
        ('{"a": "\\"' + "[" * 500 + '"}', False),
        ('{"a": "]]]", "b": ' + '["]", ' * 101 + "1" + "]" * 101 + "}", True),
        ("]" * 500, False),
    ],
)
def test_depth_is_of_brackets_outside_of_text_within_a_line(line, deep, tmp_path):
    from parity.io.formats.json_lines import refuse_deep

    lines = "\n".join(['{"a": 1}', "]" * 300, line, '{"a": 2}']).encode()
    if not deep:
        refuse_deep(lines, "x")
        return
    with pytest.raises(BadInput, match="x has a line of JSON"):
        refuse_deep(lines, "x")


def test_text_options_that_are_nested_deeply_are_refused(tmp_path):
    (tmp_path / "rows.txt").write_text("1,2\n")
    deep = "[" * 60_000 + "]" * 60_000
    for option in (["--text", deep], ["--text", '{"names":' + deep + "}"]):
        said = limited.refusal("parity", "rows.txt", *PARITY, *option, cwd=tmp_path)
        assert "expected a JSON object of" in said
        assert len(said) < 1000
