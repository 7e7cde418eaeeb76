"""Vectors of users and items by raw id, and each user's best items, as Parquet.

    FOLDER/items/part-00000.parquet    item int64 or text, vector: list of dim float32
    FOLDER/users/part-00000.parquet    user int64, vector
    FOLDER/top/part-00000.parquet      user, items: K ids, the best first, scores: float32 of each
    FOLDER/export.json                 its sources, written first

1. The product of a user's vector and an item's is the score; the best are exactly those of the
   largest scores, of equal ones the item of the smaller id.
2. A user's vector is of all the files hold of it, with a bias by time asked at a stated time.
3. A part is written beside its place and moved there. An export that was interrupted continues with
   the parts that are missing; one of another model, other data or other settings is refused.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Tuple

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from migrate.id_tables.embeddings import tables_of
from migrate.sequences.batches import plan
from migrate.sequences.histories import Histories
from migrate.sequences.model import RetrievalModel
from migrate.sequences.packing import Asking, pack, whole
from migrate.sequences.ranks import Seen, scored
from migrate.sequences.splits import Ends
from migrate.sequences.training.building import source_of
from migrate.sequences.training.feed import digest
from migrate.sequences.training.measuring import item_vectors
from migrate.sequences.training.run import Trained
from migrate.sequences.training.settings import check_asked
from semisync.common.errors import BadInput, UsageError
from semisync.common.files import replacing, write_text

FILE = "export.json"


def best(users: Tensor, items: Tensor, count: int, seen: Seen = None) -> Tuple[Tensor, Tensor]:
    """(scores, rows of `items`) of the `count` best for each user, [n, count], the best first.

    Where fewer are left, the rows are -1 and the scores -inf. Memory: that of `scored`.

    Args:
        users: [n, dim].
        items: [m, dim].
        seen: items withheld from each user.
    """
    found = []
    for _, table, places in scored(users, items, seen):
        if places is not None:
            table[places] = -torch.inf
        found.append(_best(table, min(count, len(items))))
    scores, rows = (torch.cat(parts) for parts in zip(*found))
    return scores, rows


def _best(table: Tensor, count: int) -> Tuple[Tensor, Tensor]:
    # Only the value: of equal scores torch.topk takes any, and the smaller ids are promised.
    least = table.topk(count).values[:, -1:]
    above, level = table > least, table == least
    wanted = count - above.sum(1, keepdim=True)  # of those that are level, the first ones
    taken = above | (level & (level.cumsum(1) <= wanted))
    rows = taken.nonzero()[:, 1].reshape(len(table), count)  # ascending
    scores, order = table.gather(1, rows).sort(dim=1, descending=True, stable=True)
    return scores, torch.where(scores == -torch.inf, -1, rows.gather(1, order))


def export(
    trained: Trained,
    histories: Histories,
    folder: str,
    top: int = 0,
    without_seen: bool = False,
    part: int = 1 << 16,
    asking: Optional[Asking] = None,
) -> None:
    """Writes all vectors, and with `top` so many best items for each user.

    Args:
        histories: items are rows of the model's catalog.
        without_seen: no item that the user had before is among the best.
        part: users or items of a file.
        asking: when users are asked, as `asking_of` says.

    Raises:
        UsageError: the folder has another export.
        BadInput: vectors that are not finite.
    """
    if not isinstance(trained.model, RetrievalModel):
        raise UsageError("a ranking has no vectors that give its scores; train a retrieval")
    settings = {"top": top, "without seen": without_seen, "part": part, "asked": asking}
    _begin(folder, {"step": trained.step, **settings, "data": _data(trained, histories)})
    items = item_vectors(trained.model)
    _check(items)
    for number, first in enumerate(range(0, len(items), part)):
        own = slice(first, first + part)
        path = _path(folder, "items", number)
        if not os.path.exists(path):
            _write(path, {"item": trained.items[own], "vector": _lists(items[own])})
    for number, first in enumerate(range(0, len(histories.users), part)):
        own = slice(first, first + part)
        paths = [_path(folder, kind, number) for kind in ("users", "top")[: 1 + bool(top)]]
        if all(map(os.path.exists, paths)):
            continue
        users = histories.told("user", histories.users[own])
        vectors = user_vectors(trained, histories, whole(histories, own), asking)
        _check(vectors)
        _write(paths[0], {"user": users, "vector": _lists(vectors)})
        if top:
            seen = _seen(histories, own) if without_seen else None
            _write(paths[1], {"user": users, **_best_columns(trained, vectors, items, top, seen)})


def asking_of(trained: Trained, text: Optional[str]) -> Optional[Asking]:
    """When users are asked, by default at their last event; None where it has no influence.

    Raises:
        UsageError: a time that means nothing.
    """
    if not trained.settings.model.timed and text is None:
        return None
    asking = Asking.of("last" if text is None else text)
    if asking.of_log:
        raise UsageError("an export has no event to predict; it is asked at last, +N, or a time")
    check_asked([asking], trained.settings.model)
    return asking


@torch.no_grad()
def user_vectors(
    trained: Trained, histories: Histories, ends: Ends, asking: Optional[Asking] = None
) -> Tensor:
    """The vectors of users from the events up to each end: [n, dim]."""
    settings, model = trained.settings, trained.model
    assert isinstance(model, RetrievalModel)
    source = source_of(model, settings, histories)
    sizes = ends.ends.clip(max=settings.model.length)
    found = torch.empty(len(sizes), settings.model.dim)
    for batch in plan(sizes, settings.training.tokens):
        packed = pack(source, ends.some(batch), asking).to(model.tower.device)
        found[batch] = model.user_vectors(packed).cpu()
    return found


def _begin(folder: str, described: Dict[str, Any]) -> None:
    path, text = os.path.join(folder, FILE), json.dumps(described, indent=1) + "\n"
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                raise UsageError(
                    f"{folder} has an export of another model, other data or other settings; name "
                    "another place"
                )
    for kind in ("items", "users", "top")[: 3 if described["top"] else 2]:
        os.makedirs(os.path.join(folder, kind), exist_ok=True)
    write_text(path, text)


def _data(trained: Trained, histories: Histories) -> str:
    """The identity of the export, as a digest."""
    state = trained.model.state_dict()
    weights = [value for value in state.values() if isinstance(value, Tensor)]
    for tables in tables_of(trained.model).values():
        rows = [store.state()["rows"] for store in tables.stores.values()]
        weights += [column for of in rows for column in of.values()]
    arrays = [one.cpu().numpy() for one in weights]
    return digest([*arrays, *histories[:4]], json.dumps(trained.settings.to_json()))


def _path(folder: str, kind: str, number: int) -> str:
    return os.path.join(folder, kind, f"part-{number:05d}.parquet")


def _write(path: str, columns: Dict[str, Any]) -> None:
    with replacing(path) as beside:
        pq.write_table(pa.table(columns), beside)


def _check(vectors: Tensor) -> None:
    if not bool(vectors.isfinite().all()):
        raise BadInput("a vector is not finite: the training has diverged")


def _lists(vectors: Tensor) -> pa.Array:
    flat = pa.array(vectors.reshape(-1).cpu().numpy())
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def _seen(histories: Histories, own: slice) -> Tuple[Tensor, Tensor]:
    offsets = histories.offsets[own.start : own.stop + 1]
    rows = histories.items[offsets[0] : offsets[-1]]
    return torch.from_numpy(rows), torch.from_numpy(offsets - offsets[0])


def _best_columns(
    trained: Trained,
    users: Tensor,
    items: Tensor,
    top: int,
    seen: Optional[Tuple[Tensor, Tensor]],
) -> Dict[str, Any]:
    if seen is not None:
        seen = seen[0].to(items.device), seen[1].to(items.device)
    scores, rows = (part.cpu() for part in best(users.to(items.device), items, top, seen))
    there = (rows >= 0).numpy()
    offsets = pa.array(numpy.append(0, there.sum(1).cumsum()).astype(numpy.int32))
    own, values = trained.items.take(pa.array(rows.numpy()[there])), scores.numpy()[there]
    return {
        "items": pa.ListArray.from_arrays(offsets, own),
        "scores": pa.ListArray.from_arrays(offsets, pa.array(values)),
    }
