"""The gradient of each single look-up, before torch adds those of one table.

TensorFlow concatenates the IndexedSlices of a table's look-ups, and clip_by_global_norm takes the
norm of all of them. torch's sum of sparse gradients adds rows that happen to be at the same
position, which changes the norm. So each look-up reports its own gradient here. For bags TensorFlow
looks up each distinct id once: the gradient of its row is the sum over the bags.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from torch import nn

from migrate.model.training.targets import Target
from semisync.common.errors import UsageError

Looked = Tuple[torch.Tensor, torch.Tensor]  # rows, and their gradient


class LookedUp:
    """Records the gradients of a module's look-ups."""

    def __init__(self, module: nn.Module, targets: Sequence[Target]) -> None:
        self._seen: Dict[int, List[Looked]] = {}
        sparse = {id(target.tensor) for target in targets if target.sparse}
        for inner in module.modules():
            if isinstance(inner, (nn.Embedding, nn.EmbeddingBag)) and id(inner.weight) in sparse:
                after = self._after if isinstance(inner, nn.Embedding) else self._after_bags
                inner.register_forward_hook(after, with_kwargs=True)
        for target in targets:
            if target.sparse:
                target.tensor.looked_up = self._listener(id(target.tensor))

    def gradient(self, target: Target, total: torch.Tensor) -> torch.Tensor:
        """The gradient of a table, a row for each that was looked up.

        Args:
            total: their sum.

        Raises:
            UsageError: they do not add up to it, since something else changed it.
        """
        seen = self._seen.get(id(target.tensor))
        if not seen:
            return total
        rows = torch.cat([rows for rows, _ in seen])
        values = torch.cat([values for _, values in seen])
        # torch warns unless the check of indices is explicitly on or off; here it would only cost.
        whole = torch.sparse_coo_tensor(
            rows.long().unsqueeze(0), values, total.shape, check_invariants=False
        )
        ours, theirs = whole.coalesce(), total.coalesce()
        pair = ours.values(), theirs.values()
        same = torch.equal(ours.indices(), theirs.indices())
        # The same rows, summed in another order: the bounds are for rounding.
        if not same or not torch.allclose(*pair, rtol=1e-3, atol=1e-6, equal_nan=True):
            raise UsageError(
                f"the gradient of the table {target.name!r} is not the one that came back to its "
                "look-ups; call zero_grad() before each backward pass, and do not change gradients "
                "by hand, since the optimizer does what the graph does to them"
            )
        return whole

    def clear(self) -> None:
        """Forgets the gradients so far."""
        self._seen.clear()

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: torch.Tensor) -> None:
        ids = args[0] if args else kwargs["input"]
        self._listener(id(module.weight))(ids, output)

    def _after_bags(self, module: nn.Module, args: Any, kwargs: Any, pooled: torch.Tensor) -> None:
        given = {**dict(zip(("input", "offsets", "per_sample_weights"), args)), **kwargs}
        ids, offsets, weights = given["input"], given["offsets"], given.get("per_sample_weights")
        mean = module.mode == "mean"
        self._hear(
            id(module.weight), pooled, lambda one: _distinct(one, ids, offsets, weights, mean)
        )

    def _listener(self, key: int) -> Any:
        def listen(ids: torch.Tensor, output: torch.Tensor) -> None:
            def by_row(gradient: torch.Tensor) -> Looked:
                rows = ids.reshape(-1)
                return rows, gradient.reshape(len(rows), *gradient.shape[ids.dim() :])

            self._hear(key, output, by_row)

        return listen

    def _hear(
        self, key: int, output: torch.Tensor, by_row: Callable[[torch.Tensor], Looked]
    ) -> None:
        # Without a gradient, as under no_grad, there is nothing to record.
        if output.requires_grad:
            output.register_hook(lambda one: self._seen.setdefault(key, []).append(by_row(one)))


def _distinct(
    gradient: torch.Tensor,
    ids: torch.Tensor,
    offsets: torch.Tensor,
    weights: Optional[torch.Tensor],
    mean: bool,
) -> Looked:
    """The distinct ids of bags, [ids] from offset to offset, and the gradient of the row of each.

    Args:
        gradient: of the pooled rows, [bags, dim].
    """
    # TorchRec's EmbeddingBags have include_last_offset=True.
    lengths = offsets.diff()
    if mean:
        gradient = gradient / lengths.clamp(min=1).unsqueeze(1)
    values = gradient.repeat_interleave(lengths, 0)
    if weights is not None:
        values = values * weights.unsqueeze(1)
    rows, places = torch.unique(ids, return_inverse=True)
    return rows, torch.zeros_like(values[: len(rows)]).index_add_(0, places, values)
