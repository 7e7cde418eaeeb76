"""Filling a model from the file that its wheel has, see `migrate.model.wheel`."""

from __future__ import annotations

import os
from typing import Any

import torch

from migrate.runtime.serving.linear import score_by_onednn

WEIGHTS = "weights.pt"


def load(module: torch.nn.Module, directory: str, variables: Any) -> torch.nn.Module:
    """`module` with its weights, ready to score, given the TensorFlow names in `variables`."""
    path = os.path.join(directory, WEIGHTS)
    state = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    module.load_state_dict(state)
    return score_by_onednn(module).eval()
