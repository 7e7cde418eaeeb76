"""All of a converted directory against the checkpoint: tensors by shares, hash tables by ids."""

from __future__ import annotations

import os
from functools import partial
from operator import attrgetter
from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.find import still_there
from migrate.manifest.manifest import Manifest, read_manifest
from migrate.open import frozen_graph, open_checkpoint, open_hash_tables, open_model
from migrate.targets.reading import Reader, open_target
from migrate.verification.accounts import (
    check_accounts,
    check_beside,
    check_index,
    check_kind,
    check_stored,
)
from migrate.verification.findings import Verification
from migrate.verification.frozen import compare_constants
from migrate.verification.ids import compare_table
from migrate.verification.renamed import check_renamed
from migrate.verification.shares import (
    OF_IDS,
    Found,
    Share,
    compare_shares,
    reader_of,
    shares_of,
)
from migrate.verification.steps import check_steps
from semisync.common.errors import BadInput, UsageError
from semisync.storage.remote import Unreachable
from semisync.storage.within import reachable

Spread = Callable[[List[int], Callable[[List[int]], Iterator[Found]]], Iterable[Found]]


def verify(
    prefix: str,
    directory: str,
    sample: Optional[int] = None,
    workers: Optional[int] = None,
    assets: Sequence[str] = (),
) -> Verification:
    """Compares a converted checkpoint with its source, row by row, slot by slot.

    Of a frozen graph it compares the constants, see `migrate.verification.frozen`. Anything that is
    wrong is a difference, but for unreadable values.

    Args:
        prefix: the checkpoint's.
        directory: that `convert` wrote.
        sample: rows of each tensor to draw at random; None: all.
        workers: threads; by default one per CPU, at most four, and eight for a URL.
        assets: of a frozen graph, as in `migrate.load_model`.

    Returns:
        A `Verification`.

    Raises:
        BadInput: the manifest or the checkpoint cannot be read.
        UsageError: a sample of a frozen graph is asked for.

    Examples:
        >>> from migrate.verification import verify
        >>> verify("model.ckpt-40000", "converted").verified
        True
    """
    if sample is not None and sample < 1:
        raise UsageError(f"sample is {sample}, expected at least one row")
    directory, frozen = os.fspath(directory), frozen_graph(prefix)
    if frozen is not None:
        if sample is not None:
            raise UsageError(
                f"{prefix} is a frozen graph, whose constants are all compared: drop --sample"
            )
        return compare_constants(open_model(frozen), directory, assets)
    manifest = read_manifest(directory)
    if manifest.newer is not None and not reachable(manifest.newer, os.fspath(prefix), directory):
        raise BadInput(
            f"the manifest of {directory} names the increment {manifest.newer}, and no server is "
            "asked that PREFIX or OUT does not name; copy it, and run `semisync convert --newer` "
            "again"
        )
    with open_checkpoint(prefix, newer=manifest.newer) as checkpoint:
        return compare(checkpoint, manifest, directory, sample, workers)


def compare(
    checkpoint: Checkpoint,
    manifest: Manifest,
    directory: str,
    sample: Optional[int] = None,
    workers: Optional[int] = None,
    beside: Optional[str] = None,
    spread: Optional[Spread] = None,
) -> Verification:
    """As `verify`, for an open checkpoint.

    Args:
        checkpoint: from `migrate.open_checkpoint`.
        manifest: of the directory.
        directory, sample, workers: as in `verify`.
        beside: where `manifest.json` and `model.json` stand, if not in `directory`.
        spread: divides the work: called with the numbers of the shares and the function that
            compares some of them here, while others call `compare_some`; returns all findings.

    Returns:
        A `Verification`.

    Raises:
        BadInput: the checkpoint cannot be read.

    Examples:
        >>> from migrate.verification import compare
        >>> checkpoint = migrate.open_checkpoint("model.ckpt-40000")
        >>> compare(checkpoint, migrate.read_manifest("converted"), "converted", sample=10).verified
        True
    """
    result = Verification(checkpoint.prefix, directory, sample)
    check_beside(beside or directory, manifest, result)
    check_accounts(checkpoint, manifest, result)
    check_steps(checkpoint, manifest, result)
    try:
        reader = open_target(directory, manifest.target)
    except Unreachable:  # a BadInput that says nothing of the data
        raise
    except BadInput as error:
        result.differs(str(error))
        return result
    check_index(directory, manifest, result)
    known = {one.fqn for one in manifest.tensors} | {one.name for one in manifest.renamed}
    for extra in sorted(set(reader.tensors) - known):
        result.differs(f"{extra!r} is in the target, but not in the manifest")
    if sample is None:
        check_renamed(manifest, reader, result)
    shares, broken = _shares(checkpoint, manifest, reader, result)
    compare_numbered = partial(compare_shares, checkpoint, reader, result, shares, workers)
    numbers = list(range(len(shares)))
    found = compare_numbered(numbers) if spread is None else spread(numbers, compare_numbered)
    # Threads and ranks end in any order; only the first differences are named.
    for one in sorted(found, key=attrgetter("part")):
        result.add(one.result)
    if any(table.ids is not None for table in manifest.tables):
        _compare_hashed(checkpoint, manifest, reader, broken, result)
    return result


def compare_some(
    checkpoint: Checkpoint,
    manifest: Manifest,
    directory: str,
    numbers: Sequence[int],
    workers: Optional[int] = None,
) -> Iterator[Found]:
    """The findings in the shares of these numbers, among those that `compare` divides up."""
    result = Verification(checkpoint.prefix, directory)
    reader = open_target(directory, manifest.target)
    shares, _ = _shares(checkpoint, manifest, reader, result)
    return compare_shares(checkpoint, reader, result, shares, workers, numbers)


def _shares(
    checkpoint: Checkpoint, manifest: Manifest, reader: Reader, result: Verification
) -> Tuple[List[Share], Set[str]]:
    """The shares of all tensors to compare, in an order that every process gets; and the names of
    hash tables' tensors that are not as the manifest says."""
    shares: List[Share] = []
    broken: Set[str] = set()
    for written in manifest.tensors:
        if written.role.startswith(OF_IDS):
            if not check_stored(written, reader_of(written, reader, result), result):
                broken.add(written.fqn)
            elif result.sample is None:
                shares += shares_of(written, result)
        elif check_kind(checkpoint, written, reader, result):
            result.tensors += 1
            shares += shares_of(written, result)
    return shares, broken


def _compare_hashed(
    checkpoint: Checkpoint,
    manifest: Manifest,
    reader: Reader,
    broken: Set[str],
    result: Verification,
) -> None:
    """Compares the hash tables, id by id, without those that have a `broken` tensor: that is noted
    already."""
    sources = open_hash_tables(checkpoint, still_there(manifest.meta, checkpoint.prefix))
    for table in manifest.tables:
        if table.ids is None or not broken.isdisjoint(table.ids.columns):
            continue
        if table.ids.table not in sources:
            result.differs(f"the source has no hash table {table.ids.table!r}")
            continue
        try:
            compared = compare_table(
                sources[table.ids.table],
                table,
                manifest,
                lambda written: reader_of(written, reader, result).reopened(),
                result.differs,
                result.sample,
            )
        except Unreachable:
            raise
        except BadInput as error:
            result.differs(f"table {table.name!r}: {error}")
            continue
        result.rows += compared.rows
        result.tensors += compared.tensors
        result.differing_rows += compared.differing
        if result.sample is not None and compared.rows:
            result.drew(compared.rows // compared.tensors)
