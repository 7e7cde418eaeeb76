"""report.json is what its schema says, and the schema says all of it."""

import json

import pytest

import parity
from parity.report.schema import schema, schema_text
from semisync.cli import main
from tests.parity.kinds import KINDS, comparison

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")


def closed(node):
    """The schema without room for keys that it does not name."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {name: closed(item) for name, item in node.items()}
    if "properties" in node and "required" in node and "provenance" not in node["properties"]:
        node["additionalProperties"] = False
    return node


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(4)
def test_a_report_of_every_kind_is_valid(kind):
    record = json.loads(json.dumps(comparison(kind).to_json()))
    strict = closed(schema())
    strict["additionalProperties"] = False
    jsonschema.Draft202012Validator.check_schema(strict)
    jsonschema.validate(record, strict, jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["verdict"], "SAME"),
        (["interval"], [0.1]),
        (["baseline", "auc"], "0.7"),
        (["schema"], "semisync/parity/0"),
        (["slices", "os", 0, "verdict"], "SAME"),
        (["worst_rows", 0, "label"], 2),
    ],
)
def test_what_is_wrong_is_refused(path, value):
    record = json.loads(json.dumps(comparison("slices").to_json()))
    inner = record
    for step in path[:-1]:
        inner = inner[step]
    assert inner[path[-1]] != value
    inner[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(record, schema())


@pytest.mark.long
def test_every_key_is_required():
    record = comparison("plain").to_json()
    for name in record:
        less = {key: value for key, value in record.items() if key != name}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(less, schema())


def test_the_file_that_is_written_is_valid(tmp_path):
    files = parity.write_report(comparison("runs"), tmp_path, "A title", {"files": []})
    jsonschema.validate(json.loads(files.json.read_text()), schema())


def test_the_command_prints_the_schema(capsys):
    assert main(["parity", "--print-schema"]) == 0
    assert capsys.readouterr().out == schema_text()
