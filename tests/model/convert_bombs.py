"""Converts each graph as the command does, in this process, which may take so much memory more.

    python -m tests.model.convert_bombs BYTES FOLDER GRAPH...

Prints {name of the graph: [exit code, what went to stderr]} as JSON.
"""

import contextlib
import io
import json
import os
import resource
import sys


def main(most, folder, *graphs):
    import torch  # noqa: F401

    from semisync import cli

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(most),) * 2)
    ends = {}
    for graph in graphs:
        name = os.path.splitext(os.path.basename(graph))[0]
        out = os.path.join(folder, f"{name}.out")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = cli.main(["convert", graph, out, "--model", "--output", "score"])
        ends[name] = code, said.getvalue()
    print(json.dumps(ends))


if __name__ == "__main__":
    main(*sys.argv[1:])
