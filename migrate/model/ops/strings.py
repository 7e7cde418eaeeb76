"""Strings: hashing, printing, reading, splitting, crossing; each a function of `runtime`."""

from __future__ import annotations

from typing import List

from migrate.model.ops.arguments import stacked
from migrate.model.ops.values import Call, Many, Ops, torch_type

_PRINTED = {"precision": -1, "width": -1}


def hash_bucket(call: Call) -> str:
    """`runtime.string_to_hash_bucket_fast(x, 1000)`"""
    count = call.integer("num_buckets")
    return f"runtime.string_to_hash_bucket_fast({call[0].tensor}, {count})"


def hash_bucket_v1(call: Call) -> str:
    """`runtime.string_to_hash_bucket(x, 1000)`"""
    return f"runtime.string_to_hash_bucket({call[0].tensor}, {call.integer('num_buckets')})"


def hash_bucket_strong(call: Call) -> str:
    """`runtime.string_to_hash_bucket_strong(x, 1000, [1, 2])`"""
    given = f"{call.integer('num_buckets')}, {call.integer_list('key')}"
    return f"runtime.string_to_hash_bucket_strong({call[0].tensor}, {given})"


def as_string(call: Call) -> str:
    """`runtime.as_string(x)`"""
    more = [
        f"{name}={call.integer(name, usual)}"
        for name, usual in _PRINTED.items()
        if call.integer(name, usual) != usual
    ]
    more += [f"{name}=True" for name in ("scientific", "shortest") if call.flag(name)]
    more += [f"fill={call.text('fill')!r}"] if call.text("fill") else []
    return f"runtime.as_string({', '.join([call[0].tensor, *more])})"


def to_number(call: Call) -> str:
    """`runtime.string_to_number(x, torch.float32)`"""
    dtype = torch_type(call.dtype("out_type", "float32"))
    return f"runtime.string_to_number({call[0].tensor}, {dtype})"


def join(call: Call) -> str:
    """`runtime.string_join([x, y], "-")`"""
    return f"runtime.string_join({stacked(call.args)}{_named(call, 'separator')})"


def split(call: Call) -> Many:
    """`runtime.string_split(x, b",")`: the three parts of a sparse tensor"""
    more = "" if call.flag("skip_empty", True) else ", skip_empty=False"
    return Many(f"runtime.string_split({call[0].tensor}, {call[1]}{more})", 3)


def split_v2(call: Call) -> Many:
    """`runtime.string_split_v2(x, b",")`: the three parts of a sparse tensor"""
    most = call.integer("maxsplit", -1)
    more = "" if most == -1 else f", maxsplit={most}"
    return Many(f"runtime.string_split_v2({call[0].tensor}, {call[1]}{more})", 3)


def substr(call: Call) -> str:
    """`runtime.substr(x, 0, 3)`"""
    unit = call.text("unit", "BYTE")
    more = "" if unit == "BYTE" else f", unit={unit!r}"
    return f"runtime.substr({call[0].tensor}, {call[1]}, {call[2]}{more})"


def length(call: Call) -> str:
    """`runtime.string_length(x)`"""
    unit = call.text("unit", "BYTE")
    more = "" if unit == "BYTE" else f", unit={unit!r}"
    return f"runtime.string_length({call[0].tensor}{more})"


def lower(call: Call) -> str:
    """`runtime.string_lower(x)`"""
    return f"runtime.string_lower({call[0].tensor}{_named(call, 'encoding')})"


def upper(call: Call) -> str:
    """`runtime.string_upper(x)`"""
    return f"runtime.string_upper({call[0].tensor}{_named(call, 'encoding')})"


def full_match(call: Call) -> str:
    """`runtime.regex_full_match(x, "a.*")`"""
    return f"runtime.regex_full_match({call[0].tensor}, {_text(call, 1, 'pattern')})"


def replace(call: Call) -> str:
    """`runtime.regex_replace(x, "a.*", "b")`"""
    more = "" if call.flag("replace_global", True) else ", replace_global=False"
    given = f"{_text(call, 1, 'pattern')}, {_text(call, 2, 'rewrite')}"
    return f"runtime.regex_replace({call[0].tensor}, {given}{more})"


def cross(call: Call) -> Many:
    """`runtime.sparse_cross([i], [x], [shape], [y], hashed_output=True, num_buckets=1000)`"""
    count = call.integer("N")
    lists: List[str] = [
        stacked(call.args[first : first + count]) for first in (0, count, 2 * count)
    ]
    lists.append(stacked(call.args[3 * count :]))
    more = ""
    if call.flag("hashed_output"):
        more = f", hashed_output=True, num_buckets={call.integer('num_buckets')}"
        more += f", hash_key={call.integer('hash_key')}"
    return Many(f"runtime.sparse_cross({', '.join(lists)}{more})", 3)


def bucketize(call: Call) -> str:
    """`runtime.bucketize(x, [0.0, 1.5])`"""
    return f"runtime.bucketize({call[0].tensor}, {call.numbers('boundaries')})"


def decode_csv(call: Call) -> Many:
    """`runtime.decode_csv(x, [default, default])`: the columns"""
    more = ""
    if call.text("field_delim", ",") != ",":
        more += f", field_delim={call.text('field_delim')!r}"
    more += "" if call.flag("use_quote_delim", True) else ", use_quote_delim=False"
    if call.text("na_value"):
        more += f", na_value={call.text('na_value')!r}"
    if call.integer_list("select_cols"):
        more += f", select_cols={call.integer_list('select_cols')}"
    given = f"{call[0].tensor}, {stacked(call.args[1:])}"
    return Many(f"runtime.decode_csv({given}{more})", len(call) - 1)


def decode_raw(call: Call) -> str:
    """`runtime.decode_raw(x, torch.uint8)`"""
    more = "" if call.flag("little_endian", True) else ", little_endian=False"
    return f"runtime.decode_raw({call[0].tensor}, {torch_type(call.dtype('out_type'))}{more})"


def _named(call: Call, name: str) -> str:
    text = call.text(name)
    return f", {text!r}" if text else ""


def _text(call: Call, position: int, name: str) -> str:
    """A text: an input, which must be constant, or an attribute in a Static op."""
    if call.node.op.startswith("Static"):
        return repr(call.text(name))
    return repr(bytes(call.constant(position).item()).decode())


OPS: Ops = {
    "AsString": as_string,
    "Bucketize": bucketize,
    "DecodeCSV": decode_csv,
    "DecodeRaw": decode_raw,
    "RegexFullMatch": full_match,
    "RegexReplace": replace,
    "SparseCross": cross,
    "StaticRegexFullMatch": full_match,
    "StaticRegexReplace": replace,
    "StringJoin": join,
    "StringLength": length,
    "StringLower": lower,
    "StringSplit": split,
    "StringSplitV2": split_v2,
    "StringStrip": "runtime.string_strip({0:t})",
    "StringToHashBucket": hash_bucket_v1,
    "StringToHashBucketFast": hash_bucket,
    "StringToHashBucketStrong": hash_bucket_strong,
    "StringToNumber": to_number,
    "StringUpper": upper,
    "Substr": substr,
}
