"""The counts of a data set, whole and within each day or slice, and their file.

Counts of parts add up. A part's file holds the bins in use. It says whether rows are weighted,
which columns were compared and which divide the rows, which must be the same in all parts that are
merged; and of which files the rows are, so that none is counted twice.
"""

import io
import itertools
import json
import os
import pathlib
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from parity.histogram.summary import Summary
from parity.inputs.rows import Rows
from semisync.common import json_text
from semisync.common.errors import BadInput, UsageError
from semisync.common.files import write_bytes
from semisync.common.sentences import words_of
from semisync.storage.unfolding import refuse_unfolding

FORMAT = 7  # of the file
MOST_VALUES = 250  # of all dividing columns; each takes about 13 MB

Value = Union[int, float, str]  # of a day or a slice


class Kind(NamedTuple):
    """The kind of the counts; the same in parts that add up."""

    weighted: bool = False
    day: Optional[str] = None  # the columns' names
    slices: Tuple[str, ...] = ()
    logits: Tuple[bool, bool] = (False, False)  # whether baseline, candidate hold logits

    @property
    def columns(self) -> Tuple[str, ...]:
        """The dividing columns, once each."""
        return tuple(dict.fromkeys([*self.slices, *([self.day] if self.day else [])]))


class Source(NamedTuple):
    """The source of the counts, where known."""

    columns: Mapping[str, str] = {}  # names by role
    files: Tuple[Tuple[Mapping[str, Any], ...], ...] = ()  # of each data set; FileIdentity.to_json
    join: Mapping[str, int] = {}  # rows matched, and those that either data set alone has

    def shared(self, other: "Source") -> Optional[str]:
        """A file of which both have counted rows; None where no row can be in both.

        A joined row is of a file of either data set, so both data sets must share one.
        """
        shared = []
        for ours, theirs in zip(self.files, other.files):
            known = {file["sha256"] for file in ours}
            again = [file["path"] for file in theirs if file["sha256"] in known]
            if not again:
                return None
            shared += again
        return shared[0] if shared else None

    def joined_by(self, other: "Source") -> "Source":
        """The files and joined rows of both."""
        pairs = itertools.zip_longest(self.files, other.files, fillvalue=())
        names = {**self.join, **other.join}
        return self._replace(
            files=tuple((*ours, *theirs) for ours, theirs in pairs),
            join={name: self.join.get(name, 0) + other.join.get(name, 0) for name in names},
        )


class Division(NamedTuple):
    """One column that divides the rows: row i has the value values[codes[i]]."""

    values: Sequence[Value]
    codes: np.ndarray  # int (n,)


class Counts:
    """Counts of all rows, and of those of each value of each dividing column."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.source = Source()
        self.whole = Summary(kind.weighted, kind.logits)
        self.within: Dict[str, Dict[Value, Summary]] = {name: {} for name in kind.columns}

    def add(self, rows: Rows, divisions: Dict[str, Division]) -> None:
        """Counts checked rows, with a division by each column."""
        self.whole.add(*_columns(rows))
        for name, (values, codes) in divisions.items():
            order = np.argsort(codes, kind="stable")
            edges = np.searchsorted(codes[order], np.arange(len(values) + 1))
            for i, value in enumerate(values):
                chosen = order[edges[i] : edges[i + 1]]
                self._of(name, value).add(*_columns(rows.take(chosen)))

    def codes(self, divisions: Dict[str, Division]) -> Dict[str, np.ndarray]:
        """Each division's codes, int32 (n,), by the values' places in `within`."""
        codes = {}
        for name, (values, local) in divisions.items():
            place = {value: i for i, value in enumerate(self.within[name])}
            codes[name] = np.array([place[value] for value in values], np.int32)[local]
        return codes

    def merge(self, other: "Counts") -> None:
        """Adds another part's rows; `kind` must be the same."""
        self.source = self.source.joined_by(other.source)
        self.whole.merge(other.whole)
        for name, of_values in other.within.items():
            for value, summary in of_values.items():
                self._of(name, value).merge(summary)

    def save(self, path: str) -> None:
        """Writes the bins in use to a file, whole or not at all.

        Raises:
            UsageError: it cannot be written.
        """
        values = {name: list(of_values) for name, of_values in self.within.items()}
        source = self.source._asdict()
        header = {"format": FORMAT, **self.kind._asdict(), "values": values, "source": source}
        arrays: Dict[str, Any] = {
            f"{i}/{name}": array
            for i, summary in enumerate(self._summaries())
            for name, array in summary.arrays().items()
        }
        buffer = io.BytesIO()
        np.savez_compressed(buffer, header=np.array(json.dumps(header)), **arrays)
        try:
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, buffer.getvalue())
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: str) -> "Counts":
        """Reads the file of `save`.

        Raises:
            BadInput: a file that is not there, damaged, or not such counts.
        """
        if not os.path.isfile(path):
            raise BadInput(f"there is no file {path}")
        try:
            with np.load(path, allow_pickle=False) as data:
                # Before anything is read: a small file may unfold to more than memory.
                unfolded = sum(about.file_size for about in data.zip.infolist())
                refuse_unfolding(unfolded, os.path.getsize(path), path)
                if data.zip.testzip() is not None:  # its CRC-32s; the whole file is read
                    raise ValueError("a checksum does not match")
                held: Dict[str, np.ndarray] = {name: data[name] for name in data.files}
            # The first format had no header.
            header = json_text.loads(str(held.get("header", '{"format": 1}')))
            if header["format"] != FORMAT:
                raise BadInput(f"it has format {header['format']}, but {FORMAT} is expected")
            old, new = (bool(held_as) for held_as in header["logits"])
            kind = Kind(header["weighted"], header["day"], tuple(header["slices"]), (old, new))
            counts = cls(kind)
            files = tuple(tuple(of_one) for of_one in header["source"]["files"])
            counts.source = Source(header["source"]["columns"], files, header["source"]["join"])
            for name, values in header["values"].items():
                for value in values:
                    counts._of(name, value)
            for i, summary in enumerate(counts._summaries()):
                arrays = _under(held, f"{i}/")
                summary.merge(Summary.from_arrays(arrays, kind.weighted, kind.logits))
        except BadInput as error:
            raise BadInput(f"{path} cannot be used: {error}; make it again") from error
        except Exception as error:  # damage shows as a dozen kinds, of numpy, zipfile and zlib
            raise BadInput(
                f"{path} is not a partial result of semisync parity, or is damaged: "
                f"{words_of(error)}"
            ) from error
        return counts

    def _of(self, name: str, value: Value) -> Summary:
        summaries = self.within[name]
        if value not in summaries:
            if sum(map(len, self.within.values())) >= MOST_VALUES:
                raise BadInput(
                    f"the columns {', '.join(self.within)} have more than {MOST_VALUES} values, "
                    "and each takes megabytes of counts; divide by fewer, or raise --memory to "
                    "compare exactly"
                )
            summaries[value] = Summary(self.kind.weighted, self.kind.logits)
        return summaries[value]

    def _summaries(self) -> Iterator[Summary]:
        yield self.whole
        for of_values in self.within.values():
            yield from of_values.values()


def load_all(paths: Sequence[str]) -> Counts:
    """The counts of all rows of the parts in these files.

    Raises:
        BadInput: as `Counts.load`, or parts that do not fit together.
    """
    whole = Counts.load(paths[0])
    sources = {paths[0]: whole.source}
    for path in paths[1:]:
        part = Counts.load(path)
        if part.kind != whole.kind:
            raise BadInput(
                f"{path} was made with {_options(part.kind)}, {paths[0]} with "
                f"{_options(whole.kind)}; parts must be made alike"
            )
        if part.source.columns != whole.source.columns:
            raise BadInput(
                f"{path} counts the columns {_columns_of(part)}, {paths[0]} "
                f"{_columns_of(whole)}; parts must be made alike"
            )
        for earlier, source in sources.items():
            again = source.shared(part.source)
            if again is not None:
                raise BadInput(
                    f"{path} counts {again}, which {earlier} has counted; a row counted twice "
                    "makes the interval too narrow, so merge each file's rows once"
                )
        sources[path] = part.source
        whole.merge(part)
    return whole


def _columns(
    rows: Rows,
) -> Tuple[np.ndarray, np.ndarray, np.ndarray, Optional[np.ndarray]]:
    return rows.positive, rows.baseline, rows.candidate, rows.weights


def _under(held: Dict[str, np.ndarray], prefix: str) -> Dict[str, np.ndarray]:
    return {name[len(prefix) :]: held[name] for name in held if name.startswith(prefix)}


def _options(kind: Kind) -> str:
    given = ["--weight"] if kind.weighted else []
    given += [f"--day {kind.day}"] if kind.day else []
    given += [f"--slice {' '.join(kind.slices)}"] if kind.slices else []
    sides = zip(("--baseline-logit", "--candidate-logit"), kind.logits)
    given += [option for option, held in sides if held]
    return ", ".join(given) or "neither --weight, --day, --slice nor logits"


def _columns_of(counts: Counts) -> str:
    return ", ".join(f"{role} {name!r}" for role, name in counts.source.columns.items())
