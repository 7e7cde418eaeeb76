"""Opening a data set: its columns, its files, and this process's share of it."""

from __future__ import annotations

import functools
import os
import sys
from typing import (
    Any,
    Callable,
    List,
    Optional,
    Sequence,
    Tuple,
)

from migrate.data.data_set import DataSet
from migrate.data.listing import Paths, survey
from migrate.data.loading import Loader
from migrate.data.rows import Rows
from migrate.data.schema import Column, checked
from migrate.data.shuffling import Shuffle
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput, SemisyncError, UsageError
from semisync.storage.threads import default_count


def open_data(
    paths: Paths,
    schema: Sequence[Column],
    batch_size: int,
    *,
    last: str,
    shuffle: Optional[Shuffle] = None,
    rank: Optional[int] = None,
    ranks: Optional[int] = None,
    text: Optional[TextFormat] = None,
    on_broken: str = "stop",
    convert: Optional[Callable[[Rows], Any]] = None,
    split: Optional[Callable[[Any, int], Sequence[Any]]] = None,
    readers: Optional[int] = None,
    prefetch: int = 4,
) -> DataSet[Any]:
    """Files as batches of one rank.

    Args:
        paths: files, folders or patterns, or several; on disk or URLs that fsspec serves, hdfs://
            among them. Parquet and ORC are known by their first bytes, other formats
            by the name.
        schema: the columns to read; `infer` suggests one.
        batch_size: rows per batch of a rank.
        last: "drop" leaves out the rows of an epoch's last, partial global batch; "pad" shares them
            among the ranks, in batches padded beyond `Batch.rows`; "keep", for a `convert`, shares
            them without padding: `Rows.share` is a rank's part, and a rank that would have no row
            gets the first one, which does not count.
        shuffle: None reads in the order of the files' paths.
        rank, ranks: the number of this share, and of all. By default those of torch.distributed; if
            it is not initialized, there is one share.
        text: the format of text files; by default .csv and .tsv files are read by their name.
        on_broken: "skip" continues without files and blocks that cannot be decoded: see
            `DataSet.skipped`. The batches of a broken block have fewer rows, as padded ones do. A
            file that cannot be reached always stops.
        convert: makes a batch of `Rows`, in a thread; by default a `Batch`.
        split: divides what `convert` made of several batches' rows into these batches, given that
            and the batch size. Small batches are then converted together, unless broken blocks are
            skipped.
        readers: threads that read; by default one per CPU, at most four, and eight for URLs.
        prefetch: batches that are made ahead.

    Returns:
        A `DataSet`.

    Raises:
        BadInput: files are missing, broken or lack a column, or the ranks of torch.distributed do
            not see the same files.
        UsageError: an argument is meaningless.

    Examples:
        >>> from migrate.data import Column, Shuffle, open_data
        >>> schema = [Column("item", "ids"), Column("clicked", "label")]
        >>> data = open_data("clicks.parquet", schema, 4, last="drop", shuffle=Shuffle(seed=1))
        >>> for batch in data:
        ...     print(batch.sparse.stride())
        4
        4
    """
    columns = checked(schema)
    for name, number in (("batch_size", batch_size), ("prefetch", prefetch), ("readers", readers)):
        if number is not None and number < 1:
            raise UsageError(f"{name} is {number}; at least 1 is expected")
    for name, value, known in (
        ("last", last, ("drop", "pad", "keep")),
        ("on_broken", on_broken, ("stop", "skip")),
    ):
        if value not in known:
            raise UsageError(f"{name} is {value!r}; it must be {' or '.join(map(repr, known))}")
    if last == "keep" and convert is None:
        raise UsageError("last is 'keep', which takes a convert=; for `Batch`es it is 'pad'")
    convert = convert or _batches_of(columns)
    own, count, together = _share_of(rank, ranks)
    skip = on_broken == "skip"
    written = None if text is None else text.checked()
    try:
        listing = survey(paths, columns, written, skip)
    except SemisyncError:
        if together:
            # The other ranks wait in theirs.
            _check_alike(None)
        raise
    if together:
        _check_alike(listing.digest())
    data: DataSet[Any] = DataSet(
        listing=listing,
        schema=columns,
        batch_size=batch_size,
        share=(own, count),
        shuffle=None if shuffle is None else shuffle.checked(),
        last=last,
        loader=Loader(listing, columns, written, skip),
        convert=convert,
        # With lost rows some batches are shorter, and rows cannot be split by the batch size.
        split=None if skip else split,
        readers=readers or default_count(listing.files[0].path),
        prefetch=prefetch,
    )
    if not data.batches:
        raise BadInput(
            f"the data set has {data.rows} rows, less than one global batch of {count} x "
            f"{batch_size}, which last='drop' leaves out"
            if data.rows
            else f"{listing.files[0].path} and the other files hold no rows"
        )
    return data


def _batches_of(schema: Sequence[Column]) -> Callable[[Rows], Any]:
    from migrate.data.batch import to_batch

    for column in schema:
        if column.kind == "dense" and column.dtype not in (None, "float32"):
            raise UsageError(
                f"the dense column {column.name!r} is of {column.dtype}, but a Batch has float32; "
                "leave the dtype out, or take the rows by convert="
            )
    return functools.partial(to_batch, schema=schema)


def _share_of(rank: Optional[int], ranks: Optional[int]) -> Tuple[int, int, bool]:
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


def _check_alike(digest: Optional[str]) -> None:
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
