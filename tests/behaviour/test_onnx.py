"""onnxruntime as the third witness: both exports give TensorFlow's scores, or say why not."""

import sys

import pytest

from migrate.behaviour.onnx_legs import OF_TENSORFLOW, OF_TORCH
from migrate.behaviour.report import ForwardReport, OutputDifference
from migrate.behaviour.text import forward_lines


@pytest.mark.again
def test_the_exports_of_both_sides_give_the_same_scores(converted, capsys):
    model = converted("zoo_tf2", "dcn")  # reads text
    code, found = model.verify(capsys, "--forward", model.rows, *model.flags("evaluation"))
    assert (code, found["skipped"]) == (0, {})
    legs = [output["leg"] for output in found["outputs"]]
    assert legs == ["torch"] * 2 + [OF_TORCH] * 2 + [OF_TENSORFLOW] * 2
    assert max(output["absolute"] for output in found["outputs"]) <= 2e-6
    assert {output["absolute"] > 0 for output in found["outputs"]} == {True}


@pytest.mark.long
def test_a_package_that_is_not_there_is_named(wide_and_deep, monkeypatch, capsys):
    arguments = ["--forward", wide_and_deep.rows, "--feed", "keep_prob=1.0", "--rows", "2"]
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    code, found = wide_and_deep.verify(capsys, *arguments)
    assert code == 0
    assert "the Python package 'onnxscript' is not installed" in found["skipped"][OF_TORCH]
    assert "No module named 'tf2onnx'" in found["skipped"][OF_TENSORFLOW]
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, found = wide_and_deep.verify(capsys, *arguments)
    assert code == 0
    assert {why.split(" is ")[0] for why in found["skipped"].values()} == {
        "the Python package 'onnxruntime'"
    }


def test_an_export_that_alone_differs_is_shown_and_is_no_verdict_on_the_model():
    same = OutputDifference("logits:0", "torch", 0.0, None, 0.0, None, 0)
    other = OutputDifference("logits:0", OF_TORCH, float("inf"), None, 0.0, None, 3)
    report = ForwardReport(48, 48, [same, other], None, {}, [])
    assert report.equal
    assert f"logits:0, {OF_TORCH}: 3 of 48 rows differ" in "\n".join(forward_lines(report))
    assert "the export alone is at fault" in "\n".join(forward_lines(report))
    assert report.to_json()["outputs"][1]["absolute"] == "inf"
