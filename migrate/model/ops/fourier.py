"""Fourier transforms, and complex numbers."""

from __future__ import annotations

from typing import Callable, Dict, Union

from migrate.model.ops.arguments import sizes
from migrate.model.ops.values import Call, Host, Many


def transform(name: str, axes: int = 1) -> Callable[[Call], str]:
    """A transform along the last axes, of a length that is given."""

    def write(call: Call) -> str:
        if axes == 1:
            return f"torch.fft.{name}({call[0].tensor}, {sizes(call[1])}[0])"
        return f"torch.fft.{name}({call[0].tensor}, {sizes(call[1])})"

    write.__doc__ = f"`torch.fft.{name}(x, {'8' if axes == 1 else '(8, 8)'})`"
    return write


OPS: Dict[str, Union[str, Callable[[Call], Union[str, Host, Many]]]] = {
    "Complex": "torch.complex({0:t}, {1:t})",
    "ComplexAbs": "{0:t}.abs()",
    "FFT": "torch.fft.fft({0:t})",
    "IFFT": "torch.fft.ifft({0:t})",
    "IRFFT": transform("irfft"),
    "IRFFT2D": transform("irfft2", 2),
    "Imag": "{0:t}.imag",
    "RFFT": transform("rfft"),
    "RFFT2D": transform("rfft2", 2),
    "Real": "{0:t}.real",
}
