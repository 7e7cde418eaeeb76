"""Fourier transforms, and complex numbers."""

from __future__ import annotations

from migrate.model.ops.values import Ops

OPS: Ops = {
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
