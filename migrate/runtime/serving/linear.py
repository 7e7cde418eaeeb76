"""nn.Linear by oneDNN while a model scores on a CPU.

torch multiplies float32 by MKL, which does not use AVX-512 on AMD's processors: oneDNN, which torch
contains as well, takes half of the time there. Where gradients are needed nothing changes.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

_WORTH = 1 << 22  # multiplications; fewer take less time than calling oneDNN


class Linear(nn.Linear):
    """An nn.Linear, with the same parameters."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # as torch names it
        """float32 [..., out_features] for [..., in_features]."""
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return super().forward(input)
        if torch.is_autocast_enabled("cpu"):  # torch.autocast handles other types
            return super().forward(input)
        plain = input.dtype != torch.float32 or input.device.type != "cpu"
        if plain or input.numel() * self.out_features < _WORTH:
            return super().forward(input)
        return functional.linear(input.to_mkldnn(), self.weight, self.bias).to_dense()


def score_by_onednn(module: nn.Module) -> nn.Module:
    """`module`, whose Linear layers now score by oneDNN, if torch has it."""
    if torch.backends.mkldnn.is_available():
        for layer in module.modules():
            # A subclass may have a forward of its own.
            if type(layer) is nn.Linear and layer.weight.dtype == torch.float32:
                layer.__class__ = Linear
    return module
