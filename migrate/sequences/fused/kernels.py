"""HSTU's attention over ragged sequences as Triton kernels, forwards and backwards.

    S[i, j] = Q[i] K[j] + position[place i - place j] + time[bucket(asked i - time j)]
    O[i]    = sum over the j that i sees of silu(S[i, j]) V[j]

1. Tokens are laid out as in the batch, [T, 3, heads, size]: value, query and key of each. A
   program has a block of tokens of one sequence; S is never in memory as a whole.
2. Backwards S is computed again: by a program per block of keys for dK and dV, by one per block of
   queries for dQ, and by one for the biases, which adds up the heads.
3. Sums are in float32, whatever the tokens are. Products of float32 are as
   exact as float32, unless torch.backends.cuda.matmul.allow_tf32 is set.
4. The gradients of the biases are added up in no fixed order: their last bits differ from run to
   run.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

VALUE, QUERY, KEY = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
_STEP = tl.constexpr(0.301)  # of a bucket, as in `migrate.sequences.pairs`


@triton.jit
def forward(
    tokens, stride, offsets, places, times, asked, known, event, position, time, out,
    HEADS: tl.constexpr, SIZE: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    BUCKETS: tl.constexpr, SEES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """O of a block of queries of a head."""
    head = tl.program_id(0) % HEADS
    start, size = _sequence(offsets, tl.program_id(0) // HEADS)
    first = tl.program_id(1) * BLOCK
    if first < size:
        rows = first + tl.arange(0, BLOCK)
        at = (QUERY * HEADS + head) * SIZE
        query = _load(tokens, start, rows, size, stride, at, SIZE, WIDTH)
        found = tl.zeros([BLOCK, WIDTH], tl.float32)
        for other in range(0, first + BLOCK, BLOCK):
            columns = other + tl.arange(0, BLOCK)
            at = (KEY * HEADS + head) * SIZE
            key = _load(tokens, start, columns, size, stride, at, SIZE, WIDTH)
            value = _load(tokens, start, columns, size, stride, head * SIZE, SIZE, WIDTH)
            scores, seen = _scored(
                query, key, start, rows, columns, size, places, times, asked, known, event,
                position, time, BUCKETS, SEES, PRECISION,
            )  # fmt: skip
            weights = tl.where(seen, scores * tl.sigmoid(scores), 0.0)
            found += tl.dot(weights.to(value.dtype), value, input_precision=PRECISION)
        _store(out, start, rows, size, HEADS * SIZE, head * SIZE, found, SIZE, WIDTH)


@triton.jit
def backward_keys(
    tokens, stride, offsets, places, times, asked, known, event, position, time, grad, out,
    HEADS: tl.constexpr, SIZE: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    BUCKETS: tl.constexpr, SEES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dK and dV of a block of keys of a head."""
    head = tl.program_id(0) % HEADS
    start, size = _sequence(offsets, tl.program_id(0) // HEADS)
    first = tl.program_id(1) * BLOCK
    if first < size:
        columns = first + tl.arange(0, BLOCK)
        to_key, to_value = (KEY * HEADS + head) * SIZE, head * SIZE
        key = _load(tokens, start, columns, size, stride, to_key, SIZE, WIDTH)
        value = _load(tokens, start, columns, size, stride, to_value, SIZE, WIDTH)
        of_key = tl.zeros([BLOCK, WIDTH], tl.float32)
        of_value = tl.zeros([BLOCK, WIDTH], tl.float32)
        for other in range(first, size, BLOCK):
            rows = other + tl.arange(0, BLOCK)
            at = (QUERY * HEADS + head) * SIZE
            query = _load(tokens, start, rows, size, stride, at, SIZE, WIDTH)
            given = _load(grad, start, rows, size, HEADS * SIZE, head * SIZE, SIZE, WIDTH)
            scores, seen = _scored(
                query, key, start, rows, columns, size, places, times, asked, known, event,
                position, time, BUCKETS, SEES, PRECISION,
            )  # fmt: skip
            weights = tl.where(seen, scores * tl.sigmoid(scores), 0.0).to(given.dtype)
            of_value += tl.dot(tl.trans(weights), given, input_precision=PRECISION)
            back = tl.dot(given, tl.trans(value), input_precision=PRECISION)
            slopes = tl.where(seen, back * _slope(scores), 0.0).to(query.dtype)
            of_key += tl.dot(tl.trans(slopes), query, input_precision=PRECISION)
        _store(out, start, columns, size, 3 * HEADS * SIZE, to_key, of_key, SIZE, WIDTH)
        _store(out, start, columns, size, 3 * HEADS * SIZE, to_value, of_value, SIZE, WIDTH)


@triton.jit
def backward_queries(
    tokens, stride, offsets, places, times, asked, known, event, position, time, grad, out,
    HEADS: tl.constexpr, SIZE: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    BUCKETS: tl.constexpr, SEES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dQ of a block of queries of a head."""
    head = tl.program_id(0) % HEADS
    start, size = _sequence(offsets, tl.program_id(0) // HEADS)
    first = tl.program_id(1) * BLOCK
    if first < size:
        rows = first + tl.arange(0, BLOCK)
        of_query = tl.zeros([BLOCK, WIDTH], tl.float32)
        for other in range(0, first + BLOCK, BLOCK):
            columns = other + tl.arange(0, BLOCK)
            slopes = _slopes(
                tokens, stride, start, rows, columns, size, head, places, times, asked, known,
                event, position, time, grad, HEADS, SIZE, WIDTH, BUCKETS, SEES, PRECISION,
            )  # fmt: skip
            at = (KEY * HEADS + head) * SIZE
            key = _load(tokens, start, columns, size, stride, at, SIZE, WIDTH)
            of_query += tl.dot(slopes.to(key.dtype), key, input_precision=PRECISION)
        at = (QUERY * HEADS + head) * SIZE
        _store(out, start, rows, size, 3 * HEADS * SIZE, at, of_query, SIZE, WIDTH)


@triton.jit
def backward_biases(
    tokens, stride, offsets, places, times, asked, known, event, position, time, grad,
    of_position, of_time, length,
    HEADS: tl.constexpr, SIZE: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    BUCKETS: tl.constexpr, SEES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds the bias gradients of all heads from query blocks at one distance from their keys."""
    start, size = _sequence(offsets, tl.program_id(0))
    apart = tl.program_id(1) * BLOCK
    if apart < size:
        numbers = tl.arange(0, BLOCK)
        buckets = tl.arange(0, triton.next_power_of_2(BUCKETS + 1))
        by_bucket = tl.zeros_like(buckets).to(tl.float32)
        by_distance = tl.zeros([BLOCK, BLOCK], tl.float32)
        for first in range(apart, size, BLOCK):
            rows, columns = first + numbers, first - apart + numbers
            slopes = tl.zeros([BLOCK, BLOCK], tl.float32)
            for head in range(HEADS):
                slopes += _slopes(
                    tokens, stride, start, rows, columns, size, head, places, times, asked,
                    known, event, position, time, grad,
                    HEADS, SIZE, WIDTH, BUCKETS, SEES, PRECISION,
                )  # fmt: skip
            if SEES:  # n tokens in a row have places less than n apart, in no order
                own = tl.load(places + start + rows, rows < size, 0)
                other = tl.load(places + start + columns, columns < size, 0)
                least = tl.min(tl.where(rows < size, own, 1 << 30)) - tl.max(other)
                _add_by_distance(of_position, length, own, other, least, slopes, BLOCK)
            else:
                # Places are 0, 1, 2, ...: all pairs of blocks so far apart have the same distances.
                by_distance += slopes
            if BUCKETS > 0:
                bucket = _bucket(start, rows, columns, size, times, asked, BUCKETS)
                met = slopes != 0.0
                lowest = tl.min(tl.where(met, bucket, BUCKETS))
                highest = tl.max(tl.where(met, bucket, -1))
                for number in range(lowest, highest + 1):
                    total = tl.sum(tl.where(bucket == number, slopes, 0.0))
                    by_bucket += tl.where(buckets == number, total, 0.0)
        if not SEES:
            least = apart - BLOCK + 1
            _add_by_distance(
                of_position, length, apart + numbers, numbers, least, by_distance, BLOCK
            )
        if BUCKETS > 0:
            tl.atomic_add(of_time + buckets, by_bucket, buckets < BUCKETS)


@triton.jit
def _add_by_distance(out, length, own, other, least, slopes, BLOCK: tl.constexpr):
    """Adds each slope to the bias of its distance, `own` of the row less `other` of the column.

    Args:
        least: of the distances.
    """
    distance = own[:, None] - other[None, :]
    window = tl.arange(0, 2 * BLOCK)
    found = tl.zeros([2 * BLOCK], tl.float32)
    # Summed here first: one atomic addition per distance, not per pair.
    for step in range(2 * BLOCK - 1):
        total = tl.sum(tl.where(distance == least + step, slopes, 0.0))
        found = tl.where(window == step, total, found)
    there = (least + window >= 0) & (least + window < length)
    tl.atomic_add(out + least + window, found, there)


@triton.jit
def _slopes(
    tokens, stride, start, rows, columns, size, head, places, times, asked, known, event, position,
    time, grad, HEADS: tl.constexpr, SIZE: tl.constexpr, WIDTH: tl.constexpr,
    BUCKETS: tl.constexpr, SEES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dS of a block of queries and one of keys, of a head: float32 [rows, columns]."""
    at = (QUERY * HEADS + head) * SIZE
    query = _load(tokens, start, rows, size, stride, at, SIZE, WIDTH)
    at = (KEY * HEADS + head) * SIZE
    key = _load(tokens, start, columns, size, stride, at, SIZE, WIDTH)
    value = _load(tokens, start, columns, size, stride, head * SIZE, SIZE, WIDTH)
    given = _load(grad, start, rows, size, HEADS * SIZE, head * SIZE, SIZE, WIDTH)
    scores, seen = _scored(
        query, key, start, rows, columns, size, places, times, asked, known, event, position,
        time, BUCKETS, SEES, PRECISION,
    )  # fmt: skip
    back = tl.dot(given, tl.trans(value), input_precision=PRECISION)
    return tl.where(seen, back * _slope(scores), 0.0)


@triton.jit
def _scored(
    query, key, start, rows, columns, size, places, times, asked, known, event, position, time,
    BUCKETS: tl.constexpr, SEES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """(S of a block of queries and one of keys, which of it is seen): [rows, columns]"""
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION)
    scores += _bias(start, rows, columns, size, places, times, asked, position, time, BUCKETS)
    return scores, _seen(start, rows, columns, size, known, event, SEES)


@triton.jit
def _slope(scores):
    # The derivative of silu.
    share = tl.sigmoid(scores)
    return share * (1.0 + scores * (1.0 - share))


@triton.jit
def _bias(start, rows, columns, size, places, times, asked, position, time, BUCKETS: tl.constexpr):
    own = tl.load(places + start + rows, rows < size, 0)
    other = tl.load(places + start + columns, columns < size, 0)
    # Negative only of pairs that are not seen.
    bias = tl.load(position + tl.maximum(own[:, None] - other[None, :], 0)).to(tl.float32)
    if BUCKETS > 0:
        bucket = _bucket(start, rows, columns, size, times, asked, BUCKETS)
        bias += tl.load(time + bucket).to(tl.float32)
    return bias


@triton.jit
def _bucket(start, rows, columns, size, times, asked, BUCKETS: tl.constexpr):
    """As `migrate.sequences.pairs.bucket`."""
    own = tl.load(asked + start + rows, rows < size, 0)
    other = tl.load(times + start + columns, columns < size, 0)
    age = tl.maximum(tl.abs(own[:, None] - other[None, :]), 1).to(tl.float32)
    return tl.minimum((tl.log(age) / _STEP).to(tl.int32), BUCKETS - 1)


@triton.jit
def _seen(start, rows, columns, size, known, event, SEES: tl.constexpr):
    """The columns that each row sees, a mask."""
    seen = (columns[None, :] <= rows[:, None]) & (rows < size)[:, None]
    if SEES:
        first = tl.load(known + start + rows, rows < size, 0)
        own = tl.load(event + start + rows, rows < size, 0)
        seen &= (columns[None, :] < first[:, None]) | (columns[None, :] >= own[:, None])
    return seen


@triton.jit
def _sequence(offsets, number):
    """(where it begins, how many tokens it has)"""
    start = tl.load(offsets + number)
    return start, (tl.load(offsets + number + 1) - start).to(tl.int32)


@triton.jit
def _load(tokens, start, rows, size, stride, at, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    """[rows, WIDTH], zeros beyond the sequence and beyond SIZE."""
    numbers = tl.arange(0, WIDTH)
    there = (rows < size)[:, None] & (numbers < SIZE)[None, :]
    first = tokens + start * stride + at  # 64 bits; the offset added to it needs 32
    return tl.load(first + (rows[:, None] * stride + numbers[None, :]), there, 0.0)


@triton.jit
def _store(tokens, start, rows, size, stride, at, values, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    numbers = tl.arange(0, WIDTH)
    there = (rows < size)[:, None] & (numbers < SIZE)[None, :]
    places = rows[:, None] * stride + numbers[None, :]
    tl.store(tokens + start * stride + at + places, values.to(tokens.dtype.element_ty), there)
