"""Random rows of every kind, with the values at which implementations go wrong.

Each function takes a NumPy generator and a number of rows. Strings are object arrays of bytes.
"""

import numpy as np

LENGTHS = [0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 193, 256]
EDGES = [0, 1, -1, 9, 10, 99, 100, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63)]
PIECES = ["", "a", "B", "é", "日本", "\0", " ", "_X_", "-1", "0", "😀", "z" * 20]


def pieces_of(data, lengths):
    """The bytes of `data` cut into strings of these lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    out = np.empty(len(lengths), object)
    out[:] = [data[start:end] for start, end in zip(offsets, offsets[1:])]
    return out


def strings(generator, count):
    """Any bytes: mostly up to 40 of them, some up to 300, and lengths around the hash's blocks."""
    lengths = np.where(
        generator.random(count) < 0.7,
        generator.integers(0, 40, count),
        generator.integers(0, 300, count),
    )
    edges = generator.random(count) < 0.2
    lengths[edges] = generator.choice(LENGTHS, int(edges.sum()))
    return pieces_of(generator.bytes(int(lengths.sum())), lengths)


def words(generator, count):
    """Short words, many of them twice: ids, Unicode, NUL, the empty string, "-1"."""
    pool = [f"w{number}" for number in range(3000)] + PIECES * 20
    pool += [str(number) for number in generator.integers(-(2**62), 2**62, 1000)]
    encoded = np.empty(len(pool), object)
    encoded[:] = [word.encode("utf-8") for word in pool]
    return encoded[generator.integers(0, len(pool), count)]


def integers(generator, count):
    """int64 of every number of digits, and both ends of the range."""
    bits = generator.integers(0, 64, count)
    numbers = generator.integers(-(2**63), 2**63, count) >> bits
    edges = generator.random(count) < 0.02
    numbers[edges] = generator.choice(EDGES, int(edges.sum()))
    return numbers


def doubles(generator, count):
    """float64: any magnitude up to 1e18, halves, NaN, infinities, zeros."""
    numbers = generator.standard_normal(count) * 10.0 ** generator.integers(-12, 18, count)
    halves = generator.random(count) < 0.1
    numbers[halves] = generator.integers(-4000, 4000, int(halves.sum())) / 8
    special = generator.random(count) < 0.02
    kinds = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 0.1, 1.0, 16777217.0]
    numbers[special] = generator.choice(kinds, int(special.sum()))
    return numbers


def singles(generator, count):
    """The same as float32, with numbers so small that TensorFlow takes them for 0."""
    numbers = doubles(generator, count).astype(np.float32)
    small = generator.random(count) < 0.01
    numbers[small] = generator.standard_normal(int(small.sum())) * 1e-39
    return numbers


def decimals(generator, count):
    """Numbers as text, of 1 to 20 digits, between float32 numbers too, with spaces and words."""
    numbers = generator.standard_normal(count) * 10.0 ** generator.integers(-44, 38, count)
    plain = generator.random(count) < 0.5
    numbers[plain] = generator.standard_normal(int(plain.sum())) * 100
    digits = generator.integers(1, 21, count).tolist()
    texts = [b"%.*g" % pair for pair in zip(digits, numbers.tolist())]
    with np.errstate(over="ignore"):
        single = numbers[: count // 20].astype(np.float32)
        middle = (single.astype(float) + np.nextafter(single, np.float32(np.inf))) / 2
    texts[: len(middle)] = [b"%.22e" % number for number in middle.tolist()]
    odd = [b" 1.5", b"2e3 ", b"+7", b".5", b"5.", b"inf", b"-INF", b"NaN", b" ", b"1e400", b"00012"]
    for place in generator.integers(0, count, count // 50).tolist():
        texts[place] = odd[place % len(odd)]
    out = np.empty(count, object)
    out[:] = texts
    return out


def integer_texts(generator, count):
    """int64 as text, some with spaces and zeros around."""
    texts = [b"%d" % number for number in integers(generator, count).tolist()]
    for place in generator.integers(0, count, count // 20).tolist():
        texts[place] = b" " + texts[place] + b"\t"
    out = np.empty(count, object)
    out[:] = texts
    return out


def columns(generator, count):
    """Columns of a cross: a SparseTensor of 0 to 3 words a row, 2 integers and 1 word."""
    counts = generator.integers(0, 4, count)
    row = np.repeat(np.arange(count), counts)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return (
        np.stack([row, place], axis=1),
        words(generator, len(row)),
        np.array([count, 3]),
        integers(generator, 2 * count).reshape(count, 2),
        words(generator, count).reshape(count, 1),
    )


def records(generator, count):
    """CSV of an int32, a float and a string, with quotes, missing and unavailable values."""
    numbers = generator.integers(-(2**31), 2**31, count).tolist()
    floats = (generator.standard_normal(count) * 100).tolist()
    kinds = generator.integers(0, 8, count).tolist()
    names = [b"plain", b"", b'"a,b"', b'"say ""hi"""', b"NA", b'"two\nlines"', b" x ", b'""']
    texts = [
        b"%s%s,%s,%s"
        % (
            b"\r\n" if kind % 2 else b"",
            b"%d" % number if kind != 1 else b"",
            b"%.5f" % value if kind != 2 else b"NA",
            names[kind],
        )
        for number, value, kind in zip(numbers, floats, kinds)
    ]
    out = np.empty(count, object)
    out[:] = texts
    return out


def varint(number):
    """A protobuf varint of an int64."""
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def message(field, content):
    """A field of bytes."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def feature(kind, generator, count, packed=True):
    """A serialized Feature of `count` values of a kind, "s", "f" or "i"."""
    if kind == "s":
        lengths = generator.integers(0, 6, count).tolist()
        return message(1, b"".join(message(1, generator.bytes(length)) for length in lengths))
    if kind == "f":
        bits = [value.tobytes() for value in generator.standard_normal(count).astype("<f4")]
        field, tag = 2, b"\x0d"
    else:
        bits = [varint(number) for number in integers(generator, count).tolist()]
        field, tag = 3, b"\x08"
    content = message(1, b"".join(bits)) if packed else b"".join(tag + one for one in bits)
    return message(field, content if count else b"")


def example(generator):
    """A serialized tf.train.Example whose features are present, missing, empty, or there twice."""
    entries = []
    for kind in "sfi":
        fixed = {"s": 2, "f": 3, "i": 1}[kind]
        for name, count in [
            ("sparse_", generator.integers(0, 4)),
            ("dense_", fixed),
            ("long_", 2 * generator.integers(0, 3)),
            ("other_", 2),
        ]:
            for _ in range(generator.choice([0, 1, 1, 1, 1, 1, 2])):
                value = feature(kind, generator, int(count), generator.random() < 0.7)
                if generator.random() < 0.05:
                    value = b""
                entries.append(message(1, (name + kind).encode()) + message(2, value))
    order = generator.permutation(len(entries)) if generator.random() < 0.5 else range(len(entries))
    return message(1, b"".join(message(1, entries[place]) for place in order))


def plain_example(generator, odd):
    """A serialized tf.train.Example, mostly of one value per feature, but for a share of `odd`."""
    entries = []
    for name in ("sparse_s", "other_i", "dense_i", "sparse_f", "sparse_i"):
        value = feature(name[-1], generator, 1)
        if name[-1] == "s":
            value = message(1, message(1, generator.bytes(int(generator.integers(0, 200)))))
        if generator.random() < odd:
            count = 1 if name == "dense_i" else int(generator.integers(0, 3))
            value = feature(name[-1], generator, count, generator.random() < 0.5)
        entries.append(message(1, name.encode()) + message(2, value))
    if generator.random() < odd:
        entries.append(entries[generator.integers(0, len(entries))])
    return message(1, b"".join(message(1, entry) for entry in entries))


def examples(generator, count):
    """Serialized Examples of one kind: 500 different ones per call."""
    odd = generator.choice([0, 0.001, 0.1])
    plain = generator.random() < 0.5
    pool = np.empty(min(count, 500), object)
    pool[:] = [
        plain_example(generator, odd) if plain else example(generator) for _ in range(len(pool))
    ]
    return pool[generator.integers(0, len(pool), count)]
