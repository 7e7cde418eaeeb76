"""Users and items that are text: their ids, and the texts.

The id of a text is its FarmHash Fingerprint64, the same in every run and on every machine. Two
texts of one column with the same id are refused.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

import numpy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from migrate.runtime.hashing import fingerprint64
from migrate.runtime.strings import Strings
from semisync.common.errors import BadInput
from semisync.common.files import replacing


def ids_of(text: pa.Array) -> numpy.ndarray:
    """The ids of texts: int64 [n]."""
    ids: numpy.ndarray = fingerprint64(Strings.of(text)).numpy()
    return ids


class Names(NamedTuple):
    """Text by its id.

    Attributes:
        ids: int64 [n], ascending.
        text: of each, a pyarrow large_string array [n].
    """

    ids: numpy.ndarray
    text: pa.Array

    @classmethod
    def of(cls, texts: Sequence[pa.Array], column: str) -> Names:
        """The names of all texts, each once.

        Args:
            column: names them in messages.

        Raises:
            BadInput: two of them have one id.
        """
        text = pc.unique(pa.chunked_array(texts, pa.large_string()))
        ids = ids_of(text)
        order = numpy.argsort(ids)
        ids, text = ids[order], text.take(pa.array(order))
        twice = numpy.flatnonzero(ids[1:] == ids[:-1])
        if len(twice):
            one, other = (text[int(twice[0]) + more].as_py() for more in (0, 1))
            raise BadInput(
                f"column {column!r}: {one!r} and {other!r} have the same 64-bit fingerprint, their "
                "id; change one of them"
            )
        return cls(ids, text)

    def texts(self, ids: numpy.ndarray) -> pa.Array:
        """The texts of ids, large_string [n]; raises BadInput if one has none."""
        places = numpy.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        if (self.ids[places] != ids).any():
            raise BadInput("an id has no text here; the files are of another training")
        return self.text.take(pa.array(places))

    def write(self, path: str) -> None:
        """Writes a Parquet file of ids and texts."""
        with replacing(path) as beside:
            pq.write_table(pa.table(self._asdict()), beside)

    @classmethod
    def read(cls, path: str) -> Names:
        """The contents of the file of `write`; raises BadInput if the file is missing or broken."""
        try:
            table = pq.read_table(path, columns=list(cls._fields)).combine_chunks()
            ids, text = (table[name].chunk(0) for name in cls._fields)
        except (OSError, pa.ArrowException, KeyError, IndexError) as error:
            raise BadInput(f"{path} cannot be read ({error}); train anew") from error
        return cls(ids.to_numpy(), text)
