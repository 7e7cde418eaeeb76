"""Damages real files again and again: each time the right answer or one sentence, nothing else.

    python -m tests.migrate.fuzz --checkpoints FOLDER [--count 10000] [--seed 0]

FOLDER: what write_checkpoints.py wrote. Each turn copies the files of one source, damages one of
them (bytes changed, cut out, doubled, zeroed, the end cut off or junk added), and reads all of it.

1. A SemisyncError, of one line, is right. So is every true value. Anything else ends the run with
   status 1 and the seed of the turn: another exception, a turn that does not end, a wrong value.
2. More than 1 GB beyond the interpreter cannot be allocated at all.
3. One turn in four forges: it changes an entry of an index and signs it with the right crc32c. Then
   values may differ, since the file is a valid other one; the rest holds.
4. What a format cannot tell is not asked of it: raw files have no checksums; a Monolith dump cut
   between two records is a shorter dump, but no row of it may be wrong.
"""

import argparse
import collections
import contextlib
import io
import pathlib
import random
import resource
import shutil
import signal
import sys
import tempfile

import numpy as np

import migrate
from semisync import cli
from semisync.common.errors import SemisyncError
from semisync.encoding.sstable import read_table
from tests.migrate.big_endian import swap_bytes
from tests.migrate.raw_tables import write_hugectr, write_several, write_sok
from tests.migrate.table_writer import write_table
from tests.support.require import SHARED

DATA = pathlib.Path(__file__).parent / "data"
MONOLITH = SHARED / "models/monolith_hash_tables/saved_model/ps_0/1622716114/assets"
WRITTEN = ["dtypes", "every_dtype", "slices", "by_objects", "dtypes_v1", "slices_v1"]
MEMORY = 1 << 30
SECONDS = 10.0  # of processor time; a turn takes thousandths

# kind: "tensors", "tables" (with checksums), "records" (checksums, no count), "raw" (neither)
Source = collections.namedtuple("Source", "name kind prefix files truth")


def read_tensors(prefix):
    with migrate.open_checkpoint(prefix) as checkpoint:
        found = {}
        for name in checkpoint:
            with contextlib.suppress(SemisyncError):
                found[name] = plain(checkpoint.read(name))
            with contextlib.suppress(SemisyncError):
                checkpoint.verify(name)
        checkpoint.objects()
        return found


def read_tables(prefix):
    found = {}
    for name, table in migrate.open_hash_tables(prefix).items():
        for slot, one in [("", table), *table.slots.items()]:
            with contextlib.suppress(SemisyncError):
                rows = [zip(plain(r.keys)[2], map(plain, r.values)) for r in one.chunks(2)]
                found.update({(name, slot, key): value for part in rows for key, value in part})
    return found


def plain(values):
    """Something to compare bit by bit, NaNs too."""
    values = np.asarray(values)
    if values.dtype == object or values.dtype.kind == "i":
        return str(values.dtype), values.shape, values.ravel().tolist()
    return str(values.dtype), values.shape, values.tobytes()


def read(kind, prefix):
    return read_tensors(prefix) if kind == "tensors" else read_tables(prefix)


def sources(folder, work):
    """Every kind of source, copied or made below `work`."""
    for name in WRITTEN:
        yield source(name, "tensors", folder / name, folder.glob(name + "[.-]*"))
        if name.endswith("v1") and (folder / name).exists():
            yield source(name, "tensors", folder / name, [folder / name])
    work.mkdir()
    for file in folder.glob("slices.*"):
        shutil.copy(file, work / file.name.replace("slices", "snappy"))
    index = work / "snappy.index"
    write_table(index, list(read_table(str(index))), 3, snappy=True)
    swap_bytes(folder / "every_dtype", work / "swapped")
    for name in ("snappy", "swapped"):
        yield source(name, "tensors", work / name, work.glob(name + ".*"))
    yield source("deeprec", "tables", folder / "deeprec", folder.glob("deeprec.*"))
    tfra = DATA / "tfra"
    yield source("in_bundle", "tables", tfra / "in_bundle", tfra.glob("in_bundle.*"))
    raw = (tfra / "TFRADynamicEmbedding").iterdir()
    yield source("TFRADynamicEmbedding", "raw", tfra / "TFRADynamicEmbedding", raw)
    rows = np.arange(12).reshape(6, 2)
    for made in (
        write_hugectr(work / "hugectr", range(6), rows),
        write_sok(work / "sok", "user", range(6), rows),
    ):
        yield source(made.name, "raw", made, made.iterdir())
    entries = [(7 * at, row.tolist(), 5) for at, row in enumerate(rows)]
    dump = write_several(work / "several", {"user": entries[:4], "item": entries[4:]})
    yield source("several", "records", dump, work.glob("several*"))
    if MONOLITH.exists():
        name = "MonolithHashTable_0b9721ec6fc5396c38499b5be394b722_0"
        yield source(name, "records", MONOLITH / name, MONOLITH.glob(name + "-*"))


def source(name, kind, prefix, files):
    files = sorted(one for one in files if one.suffix not in (".meta", ".npz"))
    return Source(name, kind, prefix, files, read(kind, prefix) if files else {})


def damage(data, dice):
    """`data` with one thing wrong."""
    size = len(data)
    at, length = dice.randrange(size + 1), dice.choice([1, 2, 8, 64, size // 3])
    how = dice.randrange(6)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + data[at + length :]
    if how == 2:
        return data[:at] + data[at : at + length] + data[at:]
    if how == 3:
        return data[:at] + bytes(min(length, size - at)) + data[at + length :]
    if how == 4:
        return data + dice.randbytes(length)
    changed = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 5]) if size else 0):
        changed[dice.randrange(size)] ^= dice.randrange(1, 256)
    return bytes(changed)


def forge(path, dice):
    """Damages one entry of a table and signs the table anew."""
    entries = list(read_table(str(path)))
    at = dice.randrange(len(entries))
    key, value = entries[at]
    entries[at] = (key, damage(value, dice)) if dice.random() < 0.8 else (damage(key, dice), value)
    write_table(path, entries if dice.random() < 0.5 else sorted(dict(entries).items()))


def turn(one, dice, folder):
    """One damaged copy, read; returns "right" or "refused", or raises AssertionError."""
    copies = [folder / file.name for file in one.files]
    for file, copy in zip(one.files, copies):
        shutil.copyfile(file, copy)
    victim = dice.choice(copies)
    tables = [copy for copy in copies if copy.suffix == ".index" or "_v1" in copy.name]
    forged = bool(tables) and dice.random() < 0.25
    if forged:
        forge(dice.choice(tables), dice)
    else:
        victim.write_bytes(damage(victim.read_bytes(), dice))
    prefix = folder if one.kind == "raw" else folder / one.name
    try:
        found = read(one.kind, prefix)
    except SemisyncError as error:
        assert len(str(error).splitlines()) == 1, f"no one sentence: {error}"
        if one.kind == "tensors":
            inspect(prefix)
        return "refused"
    if one.kind == "raw" or forged:
        return "read"
    wrong = {key for key, value in found.items() if one.truth.get(key) != value}
    assert not wrong, f"wrong values of {sorted(map(str, wrong))[:3]}"
    return "right" if found.keys() == one.truth.keys() else "refused in part"


def inspect(prefix):
    """The command says the same in one line, with exit code 3, where it refuses."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(["inspect", str(prefix)])
    lines = err.getvalue().splitlines()
    assert (code, len(lines)) in ((0, 0), (3, 1)), f"inspect: exit {code}, {lines}"


def too_long(*_):
    raise AssertionError(f"more than {SECONDS} seconds of processor time")


def main():
    parser = argparse.ArgumentParser(description="Damages checkpoints and reads them.")
    parser.add_argument("--checkpoints", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    outcomes = collections.Counter()
    signal.signal(signal.SIGVTALRM, too_long)
    with tempfile.TemporaryDirectory() as work:
        known = list(sources(args.checkpoints, pathlib.Path(work) / "made"))
        known = [one for one in known if one.files]
        used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        for number in range(args.seed, args.seed + args.count):
            dice = random.Random(number)
            one = known[number % len(known)]
            folder = pathlib.Path(work) / "turn"
            folder.mkdir()
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                outcomes[one.kind, turn(one, dice, folder)] += 1
            except Exception as error:
                print(f"--seed {number} --count 1, {one.name}: {error!r}")
                raise SystemExit(1) from error
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            shutil.rmtree(folder)
    for (kind, outcome), count in sorted(outcomes.items()):
        print(f"{kind:8} {outcome:16} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
