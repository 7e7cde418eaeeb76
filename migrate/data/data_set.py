"""One rank's batches: iterating over them, and the state; `migrate.data` defines these."""

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
from migrate.data.listing import Listing
from migrate.data.loading import Loader, Lost
from migrate.data.position import Division, Position, Taken, left_at
from migrate.data.rows import Rows
from migrate.data.schema import Column
from migrate.data.shuffling import Order, Shuffle
from semisync.common.errors import BadInput

B = TypeVar("B")

_STATE = "semisync.data/1"

_AT_ONCE = 2048  # rows of small batches that are converted together

logger = logging.getLogger(__name__)


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
        split: divides what `convert` made of several batches' rows into these batches; or None.
        readers: threads that read.
        prefetch: batches that are made ahead.

    Attributes:
        schema: the columns.
        batch_size: rows per batch and rank.
        rank: the number of this share, from 0.
        ranks: the number of shares.
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
        # For its check alone: the position must not have taken more rows than there are.
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
        # The division under way goes on, unless ranks or batch size have changed.
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
            # How many batches are converted together.
            most = 1 if split is None else max(1, _AT_ONCE // size)
            runs = functools.partial(division.runs, self.rank, taken, most)
            with contextlib.closing(tables(order, runs, self._loader, self._readers)) as source:
                for numbers, table, lost in source:
                    self._note(lost)
                    positions = [position_after(number + 1) for number in numbers]
                    share = division.share(self.rank, numbers[0])
                    made = self._convert(Rows(table, size, positions[-1], share))
                    # The last, partial batch always comes alone, so the others are of `size` rows.
                    batches = [made] if split is None or len(numbers) == 1 else split(made, size)
                    yield from zip(positions, batches)

        made = Ahead(make(), self._prefetch)
        try:
            # The position moves before the caller has the batch: its state is then the one after
            # it.
            for position, batch in made:
                self._position = position
                yield batch
            self._position = Position(epoch + 1)
        finally:
            made.close()

    def _note(self, lost: List[Lost]) -> None:
        for block in lost:
            self.skipped.append((block.file, block.rows, block.reason))
            logger.warning("%d rows were skipped: %s", block.rows, block.reason)
