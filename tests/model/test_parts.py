"""The two parts of a model's source: what each computes, and what the first hands over."""

from migrate.model.source.layout import wrapped
from migrate.model.source.parts import split
from migrate.model.source.statements import (
    DYNAMIC,
    RAW,
    SIZES,
    Assign,
    Block,
    If,
    Return,
    assigned,
    drop_unread,
    render,
)


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
        "out = self.layer(given['found']).reshape(given['ids'].numel() - 1)"
    ]


def rendered(*statements):
    return render(Block([*statements]), [], 0)


def test_what_comes_together_and_is_handed_on_together_has_no_names():
    three = Assign(["a", "b", "c"], "cross(x)")
    assert rendered(three, Return("bags(a, b, c)")) == ["return bags(*cross(x))"]
    three = Assign(["a", "b", "c"], "cross(x)")
    assert rendered(three, Return("bags(a, c, b)"))[0] == "a, b, c = cross(x)"
    three = Assign(["a", "b", "c"], "cross(x)")
    assert rendered(three, Return("bags(a, b, c) + a"))[0] == "a, b, c = cross(x)"


def test_what_is_split_to_be_joined_has_no_names():
    heads = Assign(["a", "b"], "x.split(4, 2)")
    assert rendered(heads, Return("torch.cat([a, b], 0)")) == ["return torch.cat(x.split(4, 2), 0)"]
    heads = Assign(["a", "b"], "x.split(4, 2)")
    assert rendered(heads, Return("f([y, a, b])")) == ["return f([y, *x.split(4, 2)])"]
    heads = Assign(["a", "b"], "x.split(4, 2)")
    assert rendered(heads, Return("torch.cat([b, a], 0)"))[0] == "a, b = x.split(4, 2)"
    places = Assign(["a", "b"], "y.unbind(1)")
    assert rendered(places, Return("x[a, b]"))[0] == "a, b = y.unbind(1)"


def test_what_no_result_depends_on_is_left_out():
    block = Block(
        [
            Assign(["flag"], "inputs['flag']", kind=RAW),
            Assign(["x"], "inputs['x']", kind=RAW),
            Assign(["off"], "~flag"),
            If("off", Block([Assign(["y"], "x")]), Block([Assign(["y"], "x")])),
            If("x.any()", Block([Assign(["z"], "x")]), Block([Assign(["z"], "-x")])),
        ]
    )
    drop_unread(block, ["z"])
    assert [sorted(assigned(one)) for one in block.statements] == [["x"], ["z"]]


def test_a_name_in_a_text_or_before_an_equals_sign_is_no_use_of_it():
    one = Assign(["age"], "inputs['age']")
    assert rendered(one, Return("{'age': f(age, age=1)}")) == [
        "return {'age': f(inputs['age'], age=1)}"
    ]


def test_an_expression_stands_where_each_element_has_a_line_anyway():
    words = [f"word_{number}_of_a_list_that_takes_a_line_for_each" for number in range(3)]
    found = Assign(["found"], "table['a name of a feature that is as long']")
    (line,) = rendered(found, Return(f"[{', '.join(words)}, found]"))
    assert line.endswith("table['a name of a feature that is as long']]")


def test_a_sum_that_is_too_long_has_a_line_for_each_term():
    terms = [f"found['feature_number_{number}']" for number in range(6)]
    assert list(wrapped(f"    total = {' + '.join(terms)} - found['last']")) == [
        "    total = (",
        f"        {terms[0]}",
        *(f"        + {term}" for term in terms[1:]),
        "        - found['last']",
        "    )",
    ]


def test_a_product_that_is_too_long_has_a_line_for_each_factor():
    kernel = f"self.a_layer_with_a_name_of_{'many_' * 10}words[0]"
    assert list(wrapped(f"    found = of_the_first_layer @ {kernel}")) == [
        "    found = (",
        "        of_the_first_layer",
        f"        @ {kernel}",
        "    )",
    ]
