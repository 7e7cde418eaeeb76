"""This process's share of a data set, and a check that all processes see the same files."""

from __future__ import annotations

import os
import sys
from typing import Any, List, Optional, Tuple

from semisync.common.errors import BadInput, UsageError


def share_of(rank: Optional[int], ranks: Optional[int]) -> Tuple[int, int, bool]:
    """The rank, the number of ranks, and whether they are those of torch.distributed.

    Raises:
        UsageError: only one of them is given, they do not fit, or a launcher has started several
            processes that torch.distributed does not know of yet.
    """
    if rank is not None and ranks is not None:
        if not 0 <= rank < ranks:
            raise UsageError(f"rank is {rank} of {ranks} ranks; it must be 0 to {ranks - 1}")
        return rank, ranks, False
    if rank is not None or ranks is not None:
        raise UsageError("rank and ranks are given together or not at all")
    distributed = _distributed()
    if distributed is not None:
        return distributed.get_rank(), distributed.get_world_size(), True
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise UsageError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but torch.distributed is not initialized: "
            "call init_process_group before open_data, or give rank and ranks"
        )
    return 0, 1, False


def check_alike(digest: Optional[str]) -> None:
    """Checks that all ranks have the same digest; a collective call of torch.distributed.

    Args:
        digest: None where this rank could not open the data set and is about to raise: without the
            call the others would wait for it.

    Raises:
        BadInput: they differ.
    """
    distributed = _distributed()
    found: List[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, digest)
    for rank, other in enumerate(found):
        if digest is not None and other is None:
            raise BadInput(f"rank {rank} cannot open the data set; its own message says why")
        if digest is not None and other != digest:
            raise BadInput(
                f"rank {rank} sees other files than rank {distributed.get_rank()}: the digests of "
                f"their listings are {other} and {digest}; give all ranks the same paths"
            )


def _distributed() -> Any:
    """torch.distributed if it is initialized; torch is not imported for this."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return None
    return torch.distributed if torch.distributed.is_initialized() else None
