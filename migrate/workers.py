"""Worker processes of a conversion.

    python -m migrate.workers DIRECTORY

1. The parent has written the job into DIRECTORY. It sends one line, the numbers of the worker's
   parts, and keeps the pipe open.
2. The worker prints a line for each part when it is on the disk. Bad input ends it with one
   sentence on stderr and exit code 3.
3. A worker whose stdin ends has lost its parent, and ends at once. What it was writing is written
   again when the conversion resumes: the same bytes at the same place.

They are programs of their own rather than multiprocessing's, which would run the caller's main
module again. A worker needs neither torch nor TensorFlow.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from typing import Iterator, List, Sequence, Union

from migrate import job as jobs
from migrate.parts import Record, write_parts
from migrate.sources.bundle import open_checkpoint
from semisync.errors import BadInput, SemisyncError

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(directory: str, todo: Sequence[int], count: int) -> Iterator[Record]:
    """Starts `count` workers, which share the parts `todo`; yields their records as they come.

    An error of one ends all.
    """
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        [_ROOT, *filter(None, [environment.get("PYTHONPATH")])]
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "migrate.workers", directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(count)
    ]
    try:
        for index, worker in enumerate(workers):
            assert worker.stdin is not None
            worker.stdin.write(json.dumps(list(todo[index::count])) + "\n")
            worker.stdin.flush()
        yield from _records(workers)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout, worker.stderr):
                if pipe is not None:
                    pipe.close()


def _records(workers: List[subprocess.Popen[str]]) -> Iterator[Record]:
    """What the workers print, until all have ended well."""
    lines: queue.Queue[Union[str, subprocess.Popen[str]]] = queue.Queue()
    for worker in workers:
        threading.Thread(target=_listen, args=(worker, lines), daemon=True).start()
    running = len(workers)
    while running:
        line = lines.get()  # each worker's last word is itself, however it ends
        if isinstance(line, str):
            yield jobs.record_from(line)
            continue
        running -= 1
        _, said = line.communicate()
        if line.returncode == 3:
            raise BadInput(said.strip())
        if line.returncode:
            raise SemisyncError(
                f"a worker process ended with code {line.returncode}"
                f"{': ' + said.strip().splitlines()[-1] if said.strip() else ''}; convert again"
            )


def _listen(
    worker: subprocess.Popen[str],
    lines: queue.Queue[Union[str, subprocess.Popen[str]]],
) -> None:
    assert worker.stdout is not None
    for line in worker.stdout:
        lines.put(line)
    lines.put(worker)


def _end_with_parent() -> None:
    while os.read(0, 1024):  # not sys.stdin, whose lock would be held when the interpreter ends
        pass
    os._exit(1)


def main(directory: str) -> int:
    """One worker; returns its exit code."""
    numbers = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        job = jobs.read(directory)
        parts = [(number, job.parts[number]) for number in numbers]
        with open_checkpoint(job.source) as checkpoint:
            for record in write_parts(checkpoint, job.items, parts, directory):
                sys.stdout.write(jobs.record_line(record))
                sys.stdout.flush()
    except SemisyncError as error:
        sys.stderr.write(str(error))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
