"""The part of a converted model that torch.export takes: the part after `transform`."""

from __future__ import annotations

from typing import Any, Mapping

import torch
from torch import nn

from migrate.runtime.embeddings import Bags

torch.export.register_dataclass(Bags, serialized_type_name="semisync.Bags")
torch.serialization.add_safe_globals([Bags])  # torch.export.save keeps an example of the inputs


class NumericPart(nn.Module):
    """The numeric part of a model as a module.

        part = runtime.NumericPart(model)
        program = torch.export.export(part, (model.transform(batch),))

    A model without the two parts is exported itself.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model: Any = model
        self.train(model.training)

    def forward(self, given: Mapping[str, Any]) -> Any:
        """The outputs, from the result of `transform`."""
        return self.model.numeric(given)
