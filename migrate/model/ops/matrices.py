"""Matrices: products, diagonals, bands; Fourier transforms and complex numbers. Weights stay in
TensorFlow's layout here: [in, out]."""

from __future__ import annotations

import re

from migrate.model.ops.arguments import number, plain
from migrate.model.ops.values import Call, Ops, torch_type

FOURIER: Ops = {
    "Complex": "torch.complex({0:t}, {1:t})",
    "ComplexAbs": "{0:t}.abs()",
    "FFT": "torch.fft.fft({0:t})",
    "IFFT": "torch.fft.ifft({0:t})",
    "IRFFT": "torch.fft.irfft({0:t}, {1:s}[0])",
    "IRFFT2D": "torch.fft.irfft2({0:t}, {1:s})",
    "Imag": "{0:t}.imag",
    "RFFT": "torch.fft.rfft({0:t}, {1:s}[0])",
    "RFFT2D": "torch.fft.rfft2({0:t}, {1:s})",
    "Real": "{0:t}.real",
}


def matmul(call: Call) -> str:
    """`x @ y`, `x @ y.T`"""
    return _product(call, "transpose_a", "transpose_b", "T")


def batch_matmul(call: Call) -> str:
    """`x @ y`, `x @ y.mT`; `x.to(torch.int32) @ y.to(torch.int32)` where the result is wider"""
    dtype = call.dtype("T", "float32")
    if dtype.startswith("complex") and (call.flag("adj_x") or call.flag("adj_y")):
        raise call.refusal("it takes the adjoint of complex matrices")
    return _product(call, "adj_x", "adj_y", "mT")


def einsum(call: Call) -> str:
    """`torch.einsum("bi,ij->bj", x, y)`"""
    equation = call.text("equation")
    if not re.fullmatch(r"[A-Za-z., ]*->[A-Za-z. ]*", equation):
        raise call.refusal(f"its equation is {equation!r}")
    return f"torch.einsum({equation!r}, {', '.join(value.tensor for value in call.args)})"


def diag(call: Call) -> str:
    """`torch.diag(x)`, of a vector"""
    return f"torch.diag({_of_rank(call, 1)})"


def diag_part(call: Call) -> str:
    """`torch.diag(x)`, of a matrix"""
    return f"torch.diag({_of_rank(call, 2)})"


def inverse(call: Call) -> str:
    """`torch.linalg.inv(x)`"""
    return f"torch.linalg.inv({call[0].tensor})" + (".mH" if call.flag("adjoint") else "")


def matrix_diag(call: Call) -> str:
    """`torch.diag_embed(x)`; other ones `runtime.matrix_diag(x, k, rows, columns, beside)`"""
    known = [None if value.constant is None else value.constant.tolist() for value in call.args[1:]]
    # (k, rows, columns, padding): the defaults of MatrixDiagV2 and V3.
    if known in ([], [0, -1, -1, 0], [[0], -1, -1, 0]):
        return f"torch.diag_embed({call[0].tensor})"
    sizes = ", ".join(map(number, call.args[2:4]))
    return f"runtime.matrix_diag({_band(call, 0, 1)}, {sizes}, {plain(call[4])}{_align(call)})"


def matrix_diag_part(call: Call) -> str:
    """`x.diagonal(0, -2, -1)`; other ones `runtime.matrix_diag_part(x, k, beside)`"""
    if _is_main(call, 1):
        return f"{call[0].tensor}.diagonal(0, -2, -1)"
    return f"runtime.matrix_diag_part({_band(call, 0, 1)}, {plain(call[2])}{_align(call)})"


def set_diag(call: Call) -> str:
    """`x.diagonal_scatter(y, 0, -2, -1)`; other ones `runtime.matrix_set_diag(x, k, y)`"""
    if _is_main(call, 2):
        return f"{call[0].tensor}.diagonal_scatter({call[1].tensor}, 0, -2, -1)"
    return f"runtime.matrix_set_diag({_band(call, 0, 2)}, {call[1].tensor}{_align(call)})"


def band(call: Call) -> str:
    """`x.tril(2).triu(-1)`"""
    below, above = (number(value) for value in call.args[1:])
    if call[1].constant is None or call[2].constant is None:
        return f"runtime.band_part({call[0].tensor}, {below}, {above})"
    text = call[0].tensor
    # A negative number keeps the whole triangle.
    text += "" if above.startswith("-") else f".tril({above})"
    return text + ("" if below.startswith("-") else f".triu({-int(below)})")


def _of_rank(call: Call, rank: int) -> str:
    # torch.diag makes a matrix of a vector, and a vector of a matrix.
    if call[0].rank != rank:
        raise call.refusal(f"it is not known to be of a tensor of {rank} axes")
    return call[0].tensor


def _is_main(call: Call, position: int) -> bool:
    """Whether only the main diagonal is meant."""
    if len(call) <= position:
        return True
    known = call[position].constant
    return known is not None and not known.ndim and not known.any()


def _band(call: Call, *positions: int) -> str:
    return ", ".join(plain(call[position]) for position in positions)


def _align(call: Call) -> str:
    """The side to which shorter diagonals are aligned: those above the main one, and those
    below."""
    usual = "RIGHT_LEFT" if call.node.op.endswith("V3") else "LEFT_LEFT"
    align = call.text("align", usual)
    return "" if align == "RIGHT_LEFT" else f", align={align!r}"


def _product(call: Call, first: str, second: str, turned: str) -> str:
    texts = []
    for value, name in zip(call.args, (first, second)):
        text = f"{value.tensor}.{turned}" if call.flag(name) else value.tensor
        wider = call.dtype("Tout", value.dtype or "")
        texts.append(text if wider == value.dtype else f"{text}.to({torch_type(wider)})")
    return " @ ".join(texts)


OPS: Ops = {
    "BatchMatMul": batch_matmul,
    "BatchMatMulV2": batch_matmul,
    "BatchMatMulV3": batch_matmul,
    "Diag": diag,
    "DiagPart": diag_part,
    "Einsum": einsum,
    "MatMul": matmul,
    "MatrixBandPart": band,
    "MatrixDeterminant": "torch.linalg.det({0:t})",
    "MatrixDiag": matrix_diag,
    "MatrixDiagPart": matrix_diag_part,
    "MatrixDiagPartV2": matrix_diag_part,
    "MatrixDiagPartV3": matrix_diag_part,
    "MatrixDiagV2": matrix_diag,
    "MatrixDiagV3": matrix_diag,
    "MatrixInverse": inverse,
    "MatrixSetDiag": set_diag,
    "MatrixSetDiagV2": set_diag,
    "MatrixSetDiagV3": set_diag,
    "SparseMatMul": matmul,
}
