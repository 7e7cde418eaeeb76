"""From raw ids to rows at run time, for tables that were converted with --ids rows.

maps = {"user": id_map("converted", "deep_user")}     # feature -> map
ebc(map_features(features, maps))
"""

from __future__ import annotations

import os
from typing import Dict, Mapping

import torch
from torchrec import KeyedJaggedTensor

from migrate.manifest.manifest import read_manifest
from migrate.targets.reading.torch_readers import read
from semisync.common.errors import UsageError


class IdMap(torch.nn.Module):
    """The rows of raw ids: row i belongs to the i-th smallest id.

    An id without a row gets row n, the table's last one, which is zero until it is trained.

    Args:
        ids: sorted, int64 [n].

    Examples:
        >>> from migrate.torchrec import IdMap
        >>> users = IdMap(torch.tensor([-7, 12, 2**40]))
        >>> users(torch.tensor([12, 99]))
        tensor([1, 3])
    """

    ids: torch.Tensor

    def __init__(self, ids: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("ids", ids)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of some ids.

        Args:
            ids: int64, of any shape.

        Returns:
            int64, of the same shape.
        """
        # Every id is unknown, and row 0 is the only one.
        if not len(self.ids):
            return torch.zeros_like(ids)
        rows = torch.searchsorted(self.ids, ids)
        # searchsorted gives n for an id above all.
        known = self.ids[rows.clamp(max=len(self.ids) - 1)] == ids
        return torch.where(known, rows, len(self.ids))


def id_map(directory: str, table: str) -> IdMap:
    """The map of a table in a converted checkpoint (--ids rows).

    Args:
        directory: the directory that `convert` wrote.
        table: the name of the table.

    Returns:
        An `IdMap`.

    Raises:
        UsageError: the table has no map.

    Examples:
        >>> from migrate.torchrec import id_map
        >>> id_map("by_id", "users_model")(torch.tensor([-7, 12, 2**40]))
        tensor([0, 1, 2])
    """
    manifest = read_manifest(os.fspath(directory))
    counts = {
        entry.name: entry.ids.count
        for entry in manifest.tables
        if entry.ids and entry.ids.mode == "rows"
    }
    if table not in counts:
        raise UsageError(
            f"{directory} has no id map of a table {table!r}, expected one of {sorted(counts)}; "
            "convert with --ids rows"
        )
    wanted: Dict[str, torch.Tensor] = {
        f"ids.{table}": torch.empty(counts[table], dtype=torch.int64)
    }
    if counts[table]:
        read(directory, wanted)
    return IdMap(wanted[f"ids.{table}"])


def map_features(features: KeyedJaggedTensor, maps: Mapping[str, IdMap]) -> KeyedJaggedTensor:
    """`features` with rows in place of raw ids.

    Args:
        features: a KeyedJaggedTensor.
        maps: by feature; a feature without a map stays as it is.

    Returns:
        A KeyedJaggedTensor.

    Examples:
        >>> from torchrec import KeyedJaggedTensor
        >>> from migrate.torchrec import id_map, map_features
        >>> raw = KeyedJaggedTensor(["user"], torch.tensor([12, -7]), lengths=torch.tensor([1, 1]))
        >>> map_features(raw, {"user": id_map("by_id", "users_model")}).values()
        tensor([1, 0])
    """
    names = features.keys()
    values = [
        maps[key](features[key].values()) if key in maps else features[key].values()
        for key in names
    ]
    return KeyedJaggedTensor(
        keys=names,
        values=torch.cat(values),
        weights=features.weights_or_none(),
        lengths=features.lengths(),
    )
