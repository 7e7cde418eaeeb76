"""Opening a data set, iterating over it, and its state; `migrate.data` defines these."""

from __future__ import annotations

import contextlib
import functools
import logging
import weakref
from typing import (
    Any,
    Callable,
    Dict,
    Generator,
    Generic,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from migrate.data.ahead import Ahead
from migrate.data.assembly import tables
from migrate.data.listing import Listing, survey
from migrate.data.loading import Loader, Lost, empty_table
from migrate.data.order.position import Division, Position, Taken, left_at
from migrate.data.order.shuffling import Order, Shuffle
from migrate.data.paths import Paths
from migrate.data.ranks import check_alike, share_of
from migrate.data.rows import Rows
from migrate.data.schema import Column, checked
from parity.io.text_format import TextFormat
from semisync.common.errors import BadInput, SemisyncError, UsageError
from semisync.storage.threads import default_count

B = TypeVar("B")

_STATE = "semisync.data/1"

_AT_ONCE = 2048  # rows of small batches that are converted together

logger = logging.getLogger(__name__)


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
        split: makes batches of what `convert` made of the rows of several, given that and the batch
            size. Small batches are then converted together, unless broken blocks are skipped.
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
    own, count, together = share_of(rank, ranks)
    skip = on_broken == "skip"
    written = None if text is None else text.checked()
    try:
        listing = survey(paths, columns, written, skip)
    except SemisyncError:
        if together:
            check_alike(None)
        raise
    if together:
        check_alike(listing.digest())
    data: DataSet[Any] = DataSet(
        listing=listing,
        schema=columns,
        batch_size=batch_size,
        share=(own, count),
        shuffle=None if shuffle is None else shuffle.checked(),
        last=last,
        loader=Loader(listing, columns, written, skip),
        convert=convert,
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


class DataSet(Generic[B]):
    """One rank's batches; `open_data` makes it.

    An iteration covers the rest of the current epoch; the next one is the next epoch. Leaving an
    iteration early keeps the position. Only one iteration at a time is possible.

    Args:
        listing: the files.
        schema: the columns.
        batch_size: rows per batch and rank.
        share: (rank, ranks).
        shuffle: or None.
        last: the treatment of the last, partial global batch.
        loader: reads and checks blocks.
        convert: makes a batch of `Rows`.
        split: makes batches of what `convert` made of the rows of several, or None.
        readers: threads that read.
        prefetch: batches that are made ahead.

    Attributes:
        schema: the columns.
        batch_size: rows per batch and rank.
        rank: which share this is, from 0.
        ranks: how many shares there are.
        rows: of the whole data set.
        digest: 16 hexadecimal digits of its listing.
        skipped: the broken files and blocks that were left out so far, with their rows (None where
            they are unknown) and the reason; of blocks, those of this rank.

    Examples:
        >>> from migrate.data import Column, open_data
        >>> data = open_data("clicks.parquet", [Column("clicked", "label")], 3, last="pad")
        >>> [batch.rows for batch in data], data.epoch
        ([3, 3, 2], 1)
    """

    def __init__(
        self,
        listing: Listing,
        schema: Sequence[Column],
        batch_size: int,
        share: Tuple[int, int],
        shuffle: Optional[Shuffle],
        last: str,
        loader: Loader,
        convert: Callable[[Rows], B],
        split: Optional[Callable[[B, int], Sequence[B]]],
        readers: int,
        prefetch: int,
    ) -> None:
        self.schema, self.batch_size = list(schema), batch_size
        self.rank, self.ranks = share
        self._shuffle, self._last = shuffle, last
        self._loader, self._convert, self._split = loader, convert, split
        self._readers, self._prefetch = readers, prefetch
        self._block_rows = listing.block_rows()
        self.rows, self.digest = sum(self._block_rows), listing.digest()
        self.skipped: List[Tuple[str, Optional[int], str]] = [
            (path, None, reason) for path, reason in listing.skipped
        ]
        self._position = Position()
        self._running: Callable[[], Optional[Generator[B, None, None]]] = lambda: None

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of, from 0."""
        return self._position.epoch

    @property
    def batches(self) -> int:
        """The number of batches left in the epoch, the same on every rank."""
        _, division, taken = self._divided(self._order())
        return division.batches - taken

    @property
    def rows_left(self) -> int:
        """The number of rows left in the epoch, for all ranks, including those that are dropped."""
        _, division, taken = self._divided(self._order())
        return division.rows - taken * self.ranks * self.batch_size

    def __iter__(self) -> Iterator[B]:
        self.close()
        running = self._iterate()
        self._running = weakref.ref(running)  # so that it ends when the caller drops it
        return running

    def state_dict(self, position: Optional[Position] = None) -> Dict[str, Any]:
        """The position after the last batch that was delivered.

        It is the same on every rank, so that one copy is enough, and independent of batches that
        were read ahead.

        Args:
            position: of a batch, for the position after that one instead.

        Returns:
            A dict of JSON's types.
        """
        return {
            "schema": _STATE,
            "digest": self.digest,
            "shuffle": None if self._shuffle is None else list(self._shuffle),
            "position": (position or self._position).to_json(),
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores the position of a state; the number of ranks and the batch size may differ.

        Args:
            state: from `state_dict`.

        Raises:
            BadInput: the state is of other files or another shuffle.
        """
        if not isinstance(state, dict) or state.get("schema") != _STATE:
            raise BadInput(f"this is not the state of a data set ({_STATE}): {state!r}")
        own = self.state_dict()
        if state["digest"] != own["digest"]:
            raise BadInput(
                f"the state is of a data set with the digest {state['digest']}, but the files here "
                f"have {own['digest']}: files were added, removed or changed, or are others"
            )
        if state["shuffle"] != own["shuffle"]:
            raise BadInput(
                f"the state is of the shuffle (seed, buffer) {state['shuffle']}; here it is "
                f"{own['shuffle']}"
            )
        position = Position.from_json(state["position"])
        left_at(position, self.rows, self._shuffle is None)
        self.close()
        self._position = position

    def close(self) -> None:
        """Ends the iteration and its threads; so does leaving the loop, and the process."""
        running = self._running()
        if running is not None:
            running.close()

    def _order(self) -> Order:
        return Order(self._block_rows, self._shuffle, self._position.epoch)

    def _divided(self, order: Order) -> Tuple[Tuple[Taken, ...], Division, int]:
        """Earlier divisions, the current one, and the number of batches taken from it."""
        before, taken = self._position.taken, 0
        if before and before[-1][:2] == (self.ranks, self.batch_size):
            before, taken = before[:-1], before[-1].batches
        in_order = self._shuffle is None
        left = left_at(Position(self.epoch, before), order.rows, in_order)
        return before, Division(left, self.ranks, self.batch_size, in_order, self._last), taken

    def _iterate(self) -> Generator[B, None, None]:
        order = self._order()
        before, division, taken = self._divided(order)
        epoch, size = self.epoch, self.batch_size

        def position_after(batches: int) -> Position:
            if batches == division.batches:
                return Position(epoch + 1)
            return Position(epoch, (*before, Taken(self.ranks, size, batches)))

        def make() -> Generator[Tuple[Position, B], None, None]:
            split = self._split
            source = tables(
                order,
                lambda: (
                    division.rows_of(self.rank, several)
                    for several in self._together(division, taken)
                ),
                self._loader.load,
                self._readers,
                self._lost,
            )
            with contextlib.closing(source):
                for several, table in zip(self._together(division, taken), source):
                    if table is None:
                        table = empty_table(self.schema)
                    positions = [position_after(number + 1) for number in several]
                    share = division.share(self.rank, several[0])
                    made = self._convert(Rows(table, size, positions[-1], share))
                    batches = [made] if split is None or len(several) == 1 else split(made, size)
                    yield from zip(positions, batches)

        made = Ahead(make(), self._prefetch)
        try:
            for position, batch in made:
                self._position = position
                yield batch
            self._position = Position(epoch + 1)
        finally:
            made.close()

    def _together(self, division: Division, taken: int) -> Iterator[range]:
        """The numbers of the batches left; those of one range are converted together."""
        most = 1 if self._split is None else max(1, _AT_ONCE // self.batch_size)
        for first in range(taken, division.whole, most):
            yield range(first, min(first + most, division.whole))
        if division.whole < division.batches:
            yield range(division.whole, division.batches)

    def _lost(self, block: Lost) -> None:
        self.skipped.append((block.file, block.rows, block.reason))
        logger.warning("%d rows were skipped: %s", block.rows, block.reason)


def _batches_of(schema: Sequence[Column]) -> Callable[[Rows], Any]:
    from migrate.data.batch import to_batch

    for column in schema:
        if column.kind == "dense" and column.dtype not in (None, "float32"):
            raise UsageError(
                f"the dense column {column.name!r} is of {column.dtype}, but a Batch has float32; "
                "leave the dtype out, or take the rows by convert="
            )
    return functools.partial(to_batch, schema=schema)
