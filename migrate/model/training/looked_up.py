"""The gradient of each single look-up, before torch adds those of one table.

TensorFlow concatenates the IndexedSlices of a table's look-ups, and clip_by_global_norm takes the
norm of all of them. torch's sum of sparse gradients joins rows that happen to stand at one place,
so that the norm would be another. Each look-up therefore tells here what comes back to it.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import torch
from torch import nn

from migrate.model.training.targets import Target
from semisync.common.errors import UsageError

Looked = Tuple[torch.Tensor, torch.Tensor]  # rows, and their gradient


class LookedUp:
    """Listens to the look-ups of a module; bags are not among them, whose rows are pooled."""

    def __init__(self, module: nn.Module, targets: Sequence[Target]) -> None:
        self._seen: Dict[int, List[Looked]] = {}
        sparse = {id(target.tensor) for target in targets if target.sparse}
        for inner in module.modules():
            if isinstance(inner, nn.Embedding) and id(inner.weight) in sparse:
                inner.register_forward_hook(self._after, with_kwargs=True)
        for target in targets:
            if target.sparse:
                target.tensor.looked_up = self._listener(id(target.tensor))

    def gradient(self, target: Target, total: torch.Tensor) -> torch.Tensor:
        """The gradient of a table, a row for each that was looked up.

        Args:
            total: their sum.

        Raises:
            UsageError: it is another, since something else changed it.
        """
        seen = self._seen.get(id(target.tensor))
        if not seen:
            return total
        rows = torch.cat([rows for rows, _ in seen])
        values = torch.cat([values for _, values in seen])
        whole = torch.sparse_coo_tensor(
            rows.long().unsqueeze(0), values, total.shape, check_invariants=False
        )
        ours, theirs = whole.coalesce(), total.coalesce()
        pair = ours.values(), theirs.values()
        same = torch.equal(ours.indices(), theirs.indices())
        if not same or not torch.allclose(*pair, rtol=1e-3, atol=1e-6, equal_nan=True):
            raise UsageError(
                f"the gradient of the table {target.name!r} is not the one that came back to its "
                "look-ups; call zero_grad() before each backward pass, and do not change gradients "
                "by hand, since the optimizer does what the graph does to them"
            )
        return whole

    def clear(self) -> None:
        """Forgets what came back so far."""
        self._seen.clear()

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: torch.Tensor) -> None:
        ids = args[0] if args else kwargs["input"]
        self._listener(id(module.weight))(ids, output)

    def _listener(self, key: int) -> Any:
        def listen(ids: torch.Tensor, output: torch.Tensor) -> None:
            def came_back(gradient: torch.Tensor) -> None:
                rows = ids.reshape(-1)
                flat = gradient.reshape(len(rows), *gradient.shape[ids.dim() :])
                self._seen.setdefault(key, []).append((rows, flat))

            if output.requires_grad:
                output.register_hook(came_back)

        return listen
