"""Matrices: products, diagonals, bands. Weights stay in TensorFlow's layout here: [in, out]."""

from __future__ import annotations

from typing import Callable, Dict, Union

from migrate.model.ops.arguments import number
from migrate.model.ops.values import Call, Host, Many


def matmul(call: Call) -> str:
    """`x @ y`, `x @ y.T`"""
    return _product(call, "transpose_a", "transpose_b", "T")


def batch_matmul(call: Call) -> str:
    """`x @ y`, `x @ y.mT`"""
    dtype = call.dtype("T", "float32")
    if dtype.startswith("complex") and (call.flag("adj_x") or call.flag("adj_y")):
        raise call.refusal("it takes the adjoint of complex matrices")
    return _product(call, "adj_x", "adj_y", "mT")


def einsum(call: Call) -> str:
    """`torch.einsum("bi,ij->bj", x, y)`"""
    equation = call.string("equation").decode()
    return f'torch.einsum("{equation}", {", ".join(value.tensor for value in call.args)})'


def diag(call: Call) -> str:
    """`torch.diag(x)`, of a vector"""
    return f"torch.diag({_of_rank(call, 1)})"


def diag_part(call: Call) -> str:
    """`torch.diag(x)`, of a matrix"""
    return f"torch.diag({_of_rank(call, 2)})"


def matrix_diag(call: Call) -> str:
    """`torch.diag_embed(x)`; a square matrix of its main diagonal"""
    if len(call) > 1 and [int(one.item()) for one in map(call.constant, (1, 2, 3, 4))] != _USUAL:
        raise call.refusal("it is not a square matrix with 0 beside its main diagonal")
    return f"torch.diag_embed({call[0].tensor})"


def matrix_diag_part(call: Call) -> str:
    """`x.diagonal(0, -2, -1)`; the main diagonal"""
    _check_main(call, 1)
    return f"{call[0].tensor}.diagonal(0, -2, -1)"


def set_diag(call: Call) -> str:
    """`x.diagonal_scatter(y, 0, -2, -1)`; the main diagonal"""
    _check_main(call, 2)
    return f"{call[0].tensor}.diagonal_scatter({call[1].tensor}, 0, -2, -1)"


def band(call: Call) -> str:
    """`x.tril(2).triu(-1)`"""
    below, above = (number(value) for value in call.args[1:])
    if call[1].constant is None or call[2].constant is None:
        return f"runtime.band_part({call[0].tensor}, {below}, {above})"
    text = call[0].tensor
    text += "" if above.startswith("-") else f".tril({above})"
    return text + ("" if below.startswith("-") else f".triu({-int(below)})")


def _of_rank(call: Call, rank: int) -> str:
    if call[0].rank != rank:
        raise call.refusal(f"it is not known to be of a tensor of {rank} axes")
    return call[0].tensor


def _check_main(call: Call, position: int) -> None:
    if len(call) > position and call.constant(position).any():
        raise call.refusal("it is of another diagonal than the main one")


def _product(call: Call, first: str, second: str, turned: str) -> str:
    texts = [
        f"{value.tensor}.{turned}" if call.flag(name) else value.tensor
        for value, name in zip(call.args, (first, second))
    ]
    return " @ ".join(texts)


# Of MatrixDiagV3: which diagonal, how many rows and columns, what stands beside.
_USUAL = [0, -1, -1, 0]

OPS: Dict[str, Union[str, Callable[[Call], Union[str, Host, Many]]]] = {
    "BatchMatMul": batch_matmul,
    "BatchMatMulV2": batch_matmul,
    "BatchMatMulV3": batch_matmul,
    "Diag": diag,
    "DiagPart": diag_part,
    "Einsum": einsum,
    "MatMul": matmul,
    "MatrixBandPart": band,
    "MatrixDiag": matrix_diag,
    "MatrixDiagPart": matrix_diag_part,
    "MatrixDiagPartV2": matrix_diag_part,
    "MatrixDiagPartV3": matrix_diag_part,
    "MatrixDiagV2": matrix_diag,
    "MatrixDiagV3": matrix_diag,
    "MatrixSetDiag": set_diag,
    "MatrixSetDiagV2": set_diag,
    "MatrixSetDiagV3": set_diag,
    "SparseMatMul": matmul,
}
