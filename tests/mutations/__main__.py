"""Plants each fault in a copy of the checkout, and runs the named tests there."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from tests.mutations.converter import CONVERTER
from tests.mutations.judge import JUDGE
from tests.mutations.wrapper import WRAPPER

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTATIONS = [*WRAPPER, *CONVERTER, *JUDGE]
COPIED = ("semisync", "graph_rewrite", "migrate", "parity", "tests", "setup.cfg", "pyproject.toml")
LINKED = (".venv-tf1",)  # with which tests of the converter write their checkpoints
SECONDS = 900  # for the tests of one fault; a fault that has them hang is found, too


def main():
    """Reads the arguments, and makes each fault in turn."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", default="", help="those of files with these words in their path")
    parser.add_argument("--list", action="store_true", help="print them and end")
    args = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if args.only in mutation.file]
    survived = 0
    with tempfile.TemporaryDirectory() as copy:
        for name in COPIED:
            put = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            put(str(ROOT / name), os.path.join(copy, name))
        for name in LINKED:
            if (ROOT / name).exists():
                os.symlink(str(ROOT / name), os.path.join(copy, name))
        for number, mutation in enumerate(chosen, 1):
            told = "{}: {!r} -> {!r}".format(mutation.file, mutation.before, mutation.after)
            began = time.monotonic()
            end = "" if args.list else "found" if found(mutation, copy) else "SURVIVED"
            survived += end == "SURVIVED"
            seconds = time.monotonic() - began
            print(
                "{}/{} {} {:.0f} s {}".format(number, len(chosen), end, seconds, told), flush=True
            )
    print("{} of {} survived".format(survived, len(chosen)))
    return int(survived > 0)


def found(mutation, copy):
    """Whether a test fails in the copy while it has the fault."""
    path = pathlib.Path(copy) / mutation.file
    source = path.read_text()
    if source.count(mutation.before) != 1:
        raise SystemExit("{}: {!r} is not there once".format(mutation.file, mutation.before))
    path.write_text(source.replace(mutation.before, mutation.after))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command.append("--hypothesis-profile=unshrunk")
    try:
        done = subprocess.run(
            command + mutation.tests.split(),
            cwd=copy,
            env=dict(os.environ, PYTHONPATH=copy, PYTHONDONTWRITEBYTECODE="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(source)
    if done.returncode not in (0, 1):  # 1: tests failed
        raise SystemExit(done.stdout.decode()[-3000:])
    return done.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
