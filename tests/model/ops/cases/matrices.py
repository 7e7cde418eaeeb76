"""Matrices: products, diagonals, bands."""

import numpy

from tests.model.ops.cases.case import Case, floats, integers, raw, vector

_X, _SQUARES = floats(2, 3), floats(2, 4, 4)

_V3 = [
    ("MatrixDiagV3", {"align": align})
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
]
_ALIGNED = [("MatrixDiagV2", {}), *_V3]

CASES = [
    *(
        Case(
            "MatMul",
            lambda x, y, a=a, b=b: raw.MatMul(a=x, b=y, transpose_a=a, transpose_b=b),
            [x, y],
        )
        for x, a in ((_X, False), (floats(3, 2), True))
        for y, b in ((floats(3, 4), False), (floats(4, 3), True))
    ),
    Case("MatMul", lambda x, y: raw.MatMul(a=x, b=y), [floats(2, 0), floats(0, 3)]),
    Case("MatMul", lambda x, y: raw.MatMul(a=x, b=y), [integers(2, 3), integers(3, 2)]),
    Case(
        "SparseMatMul",
        lambda x, y: raw.SparseMatMul(a=x, b=y, a_is_sparse=True),
        [_X, floats(3, 2)],
    ),
    *(
        Case(op, lambda x, y, a=a, b=b, op=op: getattr(raw, op)(x=x, y=y, adj_x=a, adj_y=b), [x, y])
        for op in ("BatchMatMul", "BatchMatMulV2")
        for x, a in ((floats(5, 2, 3), False), (floats(5, 3, 2), True))
        for y, b in ((floats(5, 3, 4), False), (floats(5, 4, 3), True))
    ),
    Case(
        "BatchMatMulV2", lambda x, y: raw.BatchMatMulV2(x=x, y=y), [floats(5, 2, 3), floats(3, 2)]
    ),
    Case(
        "BatchMatMulV3",
        lambda x, y: raw.BatchMatMulV3(x=x, y=y, Tout="float32"),
        [floats(5, 2, 3), floats(5, 3, 2)],
        gradient=False,
    ),
    Case(
        "Einsum",
        lambda x, y: raw.Einsum(inputs=[x, y], equation="abc,cd->abd"),
        [floats(2, 3, 4), floats(4, 2)],
    ),
    Case("Einsum", lambda x: raw.Einsum(inputs=[x], equation="...ij->...ji"), [floats(2, 3, 4)]),
    Case("Diag", lambda x: raw.Diag(diagonal=x), [floats(3)], shapes=["all"]),
    Case("DiagPart", lambda x: raw.DiagPart(input=x), [floats(3, 3)], shapes=["all"]),
    *(
        Case(
            "MatrixBandPart",
            lambda x, a=a, b=b: raw.MatrixBandPart(input=x, num_lower=a, num_upper=b),
            [x],
        )
        for x in (_SQUARES, floats(3, 5), integers(3, 3))
        for a, b in ((-1, 0), (0, -1), (1, 2), (-1, -1))
    ),
    Case(
        "MatrixBandPart",
        lambda x, a, b: raw.MatrixBandPart(input=x, num_lower=a, num_upper=b),
        [_SQUARES, vector(1)[0], vector(-1)[0]],
    ),
    Case("MatrixDiag", lambda x: raw.MatrixDiag(diagonal=x), [_X]),
    *(
        Case(
            op,
            lambda x, op=op: getattr(raw, op)(
                diagonal=x, k=0, num_rows=-1, num_cols=-1, padding_value=0.0
            ),
            [_X],
        )
        for op in ("MatrixDiagV2", "MatrixDiagV3")
    ),
    Case("MatrixDiagPart", lambda x: raw.MatrixDiagPart(input=x), [_SQUARES]),
    *(
        Case(
            op,
            lambda x, op=op: getattr(raw, op)(input=x, k=0, padding_value=0.0),
            [floats(2, 3, 5)],
        )
        for op in ("MatrixDiagPartV2", "MatrixDiagPartV3")
    ),
    Case(
        "MatrixSetDiag",
        lambda x, y: raw.MatrixSetDiag(input=x, diagonal=y),
        [_SQUARES, floats(2, 4)],
    ),
    *(
        Case(
            op,
            lambda x, y, op=op: getattr(raw, op)(input=x, diagonal=y, k=0),
            [floats(2, 3, 5), floats(2, 3)],
        )
        for op in ("MatrixSetDiagV2", "MatrixSetDiagV3")
    ),
    *(
        Case(
            op,
            lambda x, k, op=op, more=more, columns=columns: getattr(raw, op)(
                diagonal=x, k=k, num_rows=-1, num_cols=columns, padding_value=9.0, **more
            ),
            [floats(2, count, 3), vector(*k)],
            gradient=bool(more),  # TensorFlow aligns that of V2 as that of V3
        )
        for op, more in _ALIGNED
        for k, count, columns in (((-1, 1), 3, -1), ((0, 1), 2, 4), ((-2, -1), 2, -1))
    ),
    *(
        Case(
            op,
            lambda x, k, op=op, more=more: getattr(raw, op)(
                input=x, k=k, padding_value=9.0, **more
            ),
            [floats(2, 3, 5), k],
            gradient=bool(more),
        )
        for op, more in (("MatrixDiagPartV2", {}), *(("MatrixDiagPartV3", m) for _, m in _V3))
        for k in (vector(-1, 3), vector(0, 1), numpy.int32(2), numpy.int32(-1))
    ),
    *(
        Case(
            "MatrixSetDiagV3",
            lambda x, y, more=more, k=k: raw.MatrixSetDiagV3(input=x, diagonal=y, k=k, **more),
            [floats(2, 3, 5), y],
        )
        for _, more in _V3
        for k, y in (((-1, 3), floats(2, 5, 3)), (1, floats(2, 3)), ((2, 2), floats(2, 3)))
    ),
    Case(
        "BatchMatMulV3",
        lambda x, y: raw.BatchMatMulV3(x=x, y=y, Tout="int32", adj_y=True),
        [integers(2, 3, dtype="int8") * 20, integers(4, 3, dtype="int8") * 20],
    ),
]
