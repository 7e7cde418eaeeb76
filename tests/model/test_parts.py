"""The two parts of a model's source: what each computes, and what the first hands over."""

from migrate.model.source.parts import split
from migrate.model.source.statements import DYNAMIC, RAW, SIZES, Assign, Block, render


def test_a_size_that_both_parts_read_is_computed_in_both():
    block = Block(
        [
            Assign(["ids"], "inputs['ids']", kind=RAW),
            Assign(["count"], "ids.numel() - 1", kind=SIZES),
            Assign(["found"], "unique(ids, count)", kind=DYNAMIC),
            Assign(["out"], "self.layer(found).reshape(count)"),
        ]
    )
    parts = split(block, ["out"], set())
    assert parts.handed == ["ids", "found"]
    assert render(parts.transform, parts.handed, 0) == [
        "ids = inputs['ids']",
        "found = unique(ids, ids.numel() - 1)",
    ]
    assert render(parts.numeric, ["out"], 0) == [
        "ids = given['ids']",
        "found = given['found']",
        "out = self.layer(found).reshape(ids.numel() - 1)",
    ]
