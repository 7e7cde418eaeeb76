"""The declaration of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence, Union

import numpy
import torch

from migrate.id_tables.initializers import Initializer, Uniform
from migrate.id_tables.limits import Limit
from semisync.common.errors import UsageError

POOLINGS = (None, "mean", "sqrtn", "sum")


@dataclass(frozen=True)
class IdTable:
    """A table by raw ids.

    Args:
        name: the name of the table.
        dim: numbers in a vector, float32.
        features: the names of the features that it embeds.
        pooling: "sum", "mean" or "sqrtn", which divide weighted ids as TensorFlow's combiners do;
            None: a vector per id.
        initializer: of a new id's vector; by default Keras's.
        limit: None: the table grows with its ids.
        unknown: a frozen look-up's vector for an id without a row: "zeros"; "initial", the vector
            with which it would begin; or a vector [dim].

    Raises:
        UsageError: an argument is not as above.

    Examples:
        >>> from migrate.id_tables import IdEmbeddings, IdTable
        >>> tables = IdEmbeddings([IdTable("item", 4, ["item"], pooling=None)]).eval()
        >>> tables({"item": torch.tensor([[3, 2**40]])})["item"].shape
        torch.Size([1, 2, 4])
    """

    name: str
    dim: int
    features: Sequence[str]
    pooling: Optional[str] = "sum"
    initializer: Initializer = Uniform()
    limit: Optional[Limit] = None
    unknown: Union[str, Sequence[float]] = "zeros"

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise UsageError(f"table {self.name!r} has dim {self.dim}, expected at least 1")
        if self.pooling not in POOLINGS:
            raise UsageError(
                f"table {self.name!r} has pooling {self.pooling!r}, expected one of "
                f"{list(POOLINGS)}"
            )
        if isinstance(self.unknown, str):
            fits = self.unknown in ("zeros", "initial")
        else:
            fits = torch.as_tensor(self.unknown).shape == (self.dim,)
        if not fits:
            raise UsageError(
                f"table {self.name!r} has unknown {self.unknown!r}, expected 'zeros', 'initial' or "
                f"a vector of {self.dim} numbers"
            )

    def instead(self, ids: numpy.ndarray, seed: int) -> torch.Tensor:
        """The vectors of frozen look-ups for ids without rows.

        Args:
            ids: int64 [n].
            seed: of the initializer.

        Returns:
            [n, dim], or [dim] for each.
        """
        if isinstance(self.unknown, str):
            if self.unknown == "initial":
                return self.initializer(ids, self.dim, seed)
            return torch.zeros(self.dim)
        return torch.as_tensor(self.unknown, dtype=torch.float32)
