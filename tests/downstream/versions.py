"""Where the wheel installs and runs: an environment for each Python and framework, one at a time.

    python -m tests.downstream.versions [NAME ...]

builds the wheel of this checkout, installs it with pip in a new environment, runs a smoke test
there and removes the environment again. It prints the Markdown table of docs/versions.md. NAME is
a part of a row's name, such as "3.12", "core" or "tensorflow 2.8"; by default all are tried.

Interpreters are those on PATH and in pyenv. torch comes from wherever pip is told to find it: from
PyPI it is a CUDA build of several gigabytes.
"""

import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import List, NamedTuple, Optional, Sequence

from tests.downstream.environments import build_wheel, run

HERE = pathlib.Path(__file__).parent
_TORCH = (  # as docs/start.md has it, for a machine without CUDA
    ["torch==2.13.0"],
    ["fbgemm-gpu-cpu==1.8.0", "tensordict", "torchmetrics==1.0.3", "pyre-extensions", "tqdm"],
    ["--no-deps", "torchrec==1.8.0"],
    ["{wheel}[report]", "onnx", "safetensors"],
)
_LIMIT = 1800  # seconds for a step of pip


class Case(NamedTuple):
    """One environment.

    python    the version of its interpreter
    name      what it stands for
    installs  arguments of one `pip install` after another; {wheel} is the wheel's path
    program   the smoke test, a file of this folder
    """

    python: str
    name: str
    installs: Sequence[List[str]]
    program: str


def _tensorflow(python: str, version: str, *more: str) -> Case:
    installs = [[f"tensorflow=={version}", *more], ["{wheel}"]]
    return Case(python, f"tensorflow {version}", installs, "smoke_tensorflow.py")


CASES = [
    *(
        Case(python, "core", [["{wheel}"]], "smoke_core.py")
        for python in ("3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
    ),
    _tensorflow("3.7", "1.15.5", "protobuf<3.21"),
    _tensorflow("3.8", "2.8.4", "protobuf<3.21"),
    _tensorflow("3.9", "2.12.1"),
    _tensorflow("3.10", "2.15.1"),
    _tensorflow("3.11", "2.18.1"),
    _tensorflow("3.12", "2.20.0"),
    _tensorflow("3.13", "2.21.0"),
    *(
        Case(python, "torch 2.13.0", _TORCH, "smoke_torch.py")
        for python in ("3.10", "3.11", "3.12", "3.13")
    ),
]


def interpreter(version: str) -> Optional[str]:
    """The path of a Python of that version that has venv, or None."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = sorted(glob.glob(f"{root}/versions/{version}.*/bin/python"))
    for path in filter(None, [*found, shutil.which(f"python{version}")]):
        done = run([path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"])
        if done.stdout.strip() == version:
            return path
    return None


def tried(case: Case, wheel: pathlib.Path) -> str:
    """What became of a case: the versions that ran, or why it did not."""
    python = interpreter(case.python)
    if python is None:
        return "not tried: no such Python here"
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder) / "home"
        subprocess.run([python, "-m", "venv", str(home)], check=True, stdout=subprocess.DEVNULL)
        own = home / "bin" / "python"
        for install in case.installs:
            given = [word.format(wheel=wheel) for word in install]
            pip = [own, "-m", "pip", "--quiet", "install", "--no-cache-dir", "--no-compile"]
            done = run([*pip, *given], timeout=_LIMIT)
            if done.returncode:
                return f"does not install: {_last(done.stderr)}"
        shutil.copy(HERE / case.program, folder)
        done = run([own, case.program], cwd=folder, timeout=_LIMIT)
        if done.returncode:
            return f"fails: {_last(done.stderr)}"
        return done.stdout.strip().splitlines()[-1]


def _last(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if not line.startswith("[notice]")]
    return lines[-1][:200] if lines else "without a word"


def main(names: Sequence[str]) -> int:
    """Prints the table; returns 1 where something fails."""
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(pathlib.Path(folder))
        print("| Python | with | what ran |\n|---|---|---|", flush=True)
        for case in CASES:
            row = f"{case.name} on {case.python}"
            if names and not any(name in row for name in names):
                continue
            found = tried(case, wheel)
            failed = failed or found.startswith(("fails", "does not install"))
            print(f"| {case.python} | {case.name} | {found} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
