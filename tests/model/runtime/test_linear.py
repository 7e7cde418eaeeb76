"""A Linear that scores by oneDNN gives the same, has the same parameters, and trains as before."""

import torch
from torch import nn
from torch.nn import functional

from migrate.runtime.serving.linear import score_by_onednn


def test_scores_agree_and_gradients_come_from_torchs_own():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(128, 64), nn.Linear(64, 1, bias=False))
    x, before = torch.randn(2, 1024, 128), dict(module.state_dict())
    expected = functional.linear(functional.linear(x, module[0].weight, module[0].bias),
                                 module[1].weight)  # fmt: skip
    assert score_by_onednn(module) is module
    with torch.inference_mode():
        assert torch.allclose(module(x), expected, atol=2e-6)
    assert torch.equal(module(x), expected)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_autocast_takes_a_large_batch():
    layer = score_by_onednn(nn.Linear(256, 128))
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.ones(1024, 256)).dtype == torch.bfloat16
