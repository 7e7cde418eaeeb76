"""Strings; what their functions compute is tested in tests/model/runtime."""

from tests.model.ops.cases.case import Case, floats, integers, raw, strings, vector

_WORDS = strings("a", "bc", "", "a b  c", "42", "x_y,z")
_NUMBERS = strings("1", "-2", "3.5")
_INDICES = vector([0, 0], [0, 1], [2, 0], dtype="int64")
_SHAPE = vector(3, 2, dtype="int64")


def _cross(values, dense, hashed, i, s):
    return raw.SparseCross(
        indices=[i],
        values=[values],
        shapes=[s],
        dense_inputs=[dense],
        hashed_output=hashed,
        num_buckets=1000 if hashed else 0,
        hash_key=956888297470,
        out_type="int64" if hashed else "string",
        internal_type="int64" if hashed else "string",
    )


CASES = [
    Case("AsString", lambda x: raw.AsString(input=x), [integers(4)]),
    Case(
        "AsString",
        lambda x: raw.AsString(input=x, precision=2, width=8, fill="0"),
        [floats(4)],
        gradient=False,
    ),
    Case("AsString", lambda x: raw.AsString(input=x, scientific=True), [floats(4)], gradient=False),
    Case("AsString", lambda x: raw.AsString(input=x, shortest=True), [floats(4)], gradient=False),
    Case("Bucketize", lambda x: raw.Bucketize(input=x, boundaries=[-1.0, 0.1, 1.5]), [floats(8)]),
    *(
        Case("SparseCross", lambda i, x, s, y, h=h: _cross(x, y, h, i, s), [_INDICES, x, _SHAPE, y])
        for x in (strings("a", "b", "c"), vector(5, -6, 7, dtype="int64"))
        for y in (strings("p", "q", "r").reshape(3, 1), vector([1], [2], [3], dtype="int64"))
        for h in (True, False)
        if h or x.dtype == y.dtype == object  # TensorFlow 2 refuses to print integers here
    ),
    Case(
        "DecodeCSV",
        lambda x: list(raw.DecodeCSV(records=x, record_defaults=[[1], [0.5], ["z"], [[]][0]])),
        [strings('1,,"a,b",7', "2,3.5,,8")],
    ),
    Case(
        "DecodeCSV",
        lambda x: list(
            raw.DecodeCSV(
                records=x,
                record_defaults=[[7], ["z"]],
                field_delim=";",
                use_quote_delim=False,
                na_value="-",
                select_cols=[0, 2],
            )
        ),
        [strings("1;x;y", '-;x;"q"')],
    ),
    Case("DecodeRaw", lambda x: raw.DecodeRaw(bytes=x, out_type="uint8"), [_WORDS[:1]]),
    Case("DecodeRaw", lambda x: raw.DecodeRaw(bytes=x, out_type="int32"), [strings("abcdefgh")]),
    Case("RegexFullMatch", lambda x: raw.RegexFullMatch(input=x, pattern="[a-z]+"), [_WORDS]),
    Case(
        "StaticRegexFullMatch", lambda x: raw.StaticRegexFullMatch(input=x, pattern="a.*"), [_WORDS]
    ),
    Case(
        "RegexReplace",
        lambda x: raw.RegexReplace(input=x, pattern="(a)", rewrite="<\\1>"),
        [_WORDS],
    ),
    Case(
        "StaticRegexReplace",
        lambda x: raw.StaticRegexReplace(input=x, pattern=" ", rewrite="-", replace_global=False),
        [_WORDS],
    ),
    Case("StringJoin", lambda x: raw.StringJoin(inputs=[x, "7", x], separator="-"), [_WORDS]),
    Case("StringLength", lambda x: raw.StringLength(input=x), [_WORDS]),
    Case("StringLower", lambda x: raw.StringLower(input=x), [strings("Ab", "C")]),
    Case("StringUpper", lambda x: raw.StringUpper(input=x), [_WORDS]),
    Case("StringStrip", lambda x: raw.StringStrip(input=x), [strings(" a ", "b\t", "")]),
    Case("StringSplit", lambda x: raw.StringSplit(input=x, delimiter=" ,"), [_WORDS]),
    Case(
        "StringSplit", lambda x: raw.StringSplit(input=x, delimiter=" ", skip_empty=False), [_WORDS]
    ),
    Case("StringSplitV2", lambda x: raw.StringSplitV2(input=x, sep="_"), [_WORDS]),
    Case("StringSplitV2", lambda x: raw.StringSplitV2(input=x, sep="", maxsplit=1), [_WORDS]),
    Case(
        "StringToHashBucket",
        lambda x: raw.StringToHashBucket(string_tensor=x, num_buckets=10),
        [_WORDS],
    ),
    Case(
        "StringToHashBucketFast",
        lambda x: raw.StringToHashBucketFast(input=x, num_buckets=10),
        [_WORDS],
    ),
    Case(
        "StringToHashBucketStrong",
        lambda x: raw.StringToHashBucketStrong(input=x, num_buckets=10, key=[3, 4]),
        [_WORDS],
    ),
    *(
        Case("StringToNumber", lambda x, t=t: raw.StringToNumber(string_tensor=x, out_type=t), [x])
        for x, t in [(_NUMBERS, "float32"), (_NUMBERS[:2], "int64"), (_NUMBERS[:2], "int32")]
    ),
    Case("Substr", lambda x: raw.Substr(input=x, pos=0, len=2), [_WORDS]),
    Case("Equal", lambda x: raw.Equal(x=x, y=""), [_WORDS]),
    Case("NotEqual", lambda x, y: raw.NotEqual(x=x, y=y), [_WORDS, _WORDS[::-1].copy()]),
    Case(
        "Select",
        lambda c, x, y: raw.Select(condition=c, x=x, y=y),
        [vector(1, 0) > 0, _WORDS[:2], _WORDS[2:4]],
    ),
    Case(
        "SelectV2",
        lambda c, x: raw.SelectV2(condition=c, t=x, e="none"),
        [vector(1, 0) > 0, _WORDS[:2]],
    ),
]
