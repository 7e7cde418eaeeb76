"""Interpreters that start at once: forked from one that has imported the slow frameworks.

Importing TensorFlow 2 takes 5 s of CPU, TorchRec 3 s, TensorFlow 1.15 one, and a test that runs
commands would pay that for every command. Instead:

1. The tests start one server of an interpreter (`interpreters`), which imports the frameworks that
   it has and does nothing else.
2. They run `python`, or a console script, from a folder of stand-ins. A stand-in sends the server
   its arguments, environment, working directory and standard streams.
3. The server forks. The fork does what the interpreter does with these arguments, in its own
   process group.
4. A stand-in ends as its fork ends. A fork is killed when its stand-in ends, and all forks when the
   server's stdin is closed.

A fork differs from a fresh interpreter in the modules already imported, and in its parent process.
Use it to test what a command does, not what it imports.
"""

import array
import atexit
import contextlib
import functools
import gc
import importlib.util
import json
import multiprocessing
import os
import pathlib
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRAMEWORKS = (
    "numba",
    "pyarrow.parquet",
    "tensorflow.compat.v1",
    "torch.distributed.checkpoint",
    "torchrec",
    "tests.support.no_deprecations",
)
LENGTH = 8  # bytes that give the size of a request
_servers = contextlib.ExitStack()

_STAND_IN = """#!{python} -SE
import array, json, os, signal, socket, sys
request = json.dumps({{
    "argv": {before} + sys.argv[1:],
    "executable": {executable!r},
    "directory": os.getcwd(),
    "environment": dict(os.environ),
}}).encode()
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
streams = array.array("i", [0, 1, 2])
head = len(request).to_bytes({length}, "big")
server.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(request)
code = int(server.recv(16) or 1)
if code < 0:
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@functools.lru_cache(maxsize=None)
def forked(python):
    """The folder of `interpreters`, started when first asked for and ended by `end_all`."""
    return _servers.enter_context(interpreters(python))


def end_all():
    """Ends what `forked` has started."""
    forked.cache_clear()
    _servers.close()


@contextlib.contextmanager
def interpreters(python):
    """Yields a folder with `python` and `semisync` that run as forks; ends every fork.

    Args:
        python: path of the interpreter, in a virtual environment.
    """
    python = pathlib.Path(python)
    with tempfile.TemporaryDirectory() as environment:
        (pathlib.Path(environment) / "lib").symlink_to(python.parent.with_name("lib"))
        folder = pathlib.Path(environment) / "bin"
        folder.mkdir()
        address = str(folder / "socket")
        for name in ("python", "semisync"):
            stand_in = folder / name
            stand_in.write_text(
                _STAND_IN.format(
                    python=python,
                    before=[] if name == "python" else [str(python.with_name(name))],
                    executable=str(folder / "python"),
                    address=address,
                    length=LENGTH,
                )
            )
            stand_in.chmod(0o755)
        server_environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
        server_environment.pop("TF2_BEHAVIOR", None)  # see tests.support.require.environment
        server = subprocess.Popen(
            [str(python), "-m", __name__, address],
            cwd=str(ROOT),
            env=server_environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert server.stdout.readline() == b"ready\n"
            yield folder
        finally:
            server.stdin.close()
            server.wait()
            server.stdout.close()


def main(address):
    """The server; returns only in a fork, with the request that the fork is to run."""
    for module in FRAMEWORKS:
        if importlib.util.find_spec(module.partition(".")[0]):
            __import__(module)
    gc.freeze()  # else each fork would search what is imported for garbage, and copy it
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    guards = []
    with selectors.DefaultSelector() as events:
        events.register(listener, selectors.EVENT_READ)
        events.register(0, selectors.EVENT_READ)
        while all(key.fileobj is listener for key, _ in events.select()):
            stand_in, _ = listener.accept()
            guards.append(os.fork())
            if guards[-1] == 0:
                listener.close()
                return guard(stand_in)
            stand_in.close()
            guards = [pid for pid in guards if os.waitpid(pid, os.WNOHANG) == (0, 0)]
    for pid in guards:
        os.waitpid(pid, 0)
    os._exit(0)


def guard(stand_in):
    """Forks for a stand-in; returns the request in the fork, and never in the guard."""
    head, data, _, _ = stand_in.recvmsg(LENGTH, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i", data[0][2])
    with stand_in.makefile("rb") as file:
        request = json.loads(file.read(int.from_bytes(head, "big")))
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    signal.set_wakeup_fd(ends)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    fork = os.fork()
    if fork == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (ended, ends):
            os.close(each)
        stand_in.close()
        os.setpgid(0, 0)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return request
    for stream in streams:
        os.close(stream)
    with selectors.DefaultSelector() as events:
        for source in (ended, stand_in, 0):  # the last two become readable only when they close
            events.register(source, selectors.EVENT_READ)
        if any(key.fd != ended for key, _ in events.select()):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(fork, signal.SIGKILL)
    _, status = os.waitpid(fork, 0)
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    with contextlib.suppress(BrokenPipeError):
        stand_in.sendall(str(code).encode())
    os._exit(0)


def run(argv, executable, directory, environment):
    """Does what `python ARGV` does, for the options that the tests use.

    A process that the program starts by sys.executable is a fork, too. multiprocessing's are not,
    because a stand-in passes on only the standard streams.
    """
    multiprocessing.set_executable(sys.executable)
    sys.executable = executable
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    path = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:1] = path
    while argv[0] in ("-u", "-W"):
        if argv[0] == "-W":
            warnings.simplefilter(argv[1])
        argv = argv[1 + (argv[0] == "-W") :]
    name, sys.argv = argv[0], argv
    if name == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *argv[2:]]
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        exec(compile(argv[1], "<string>", "exec"), module.__dict__)
    elif name == "-m":
        sys.path.insert(0, directory)
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        if not os.path.isdir(name):  # runpy adds a folder with a __main__.py itself
            sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
        runpy.run_path(name, run_name="__main__")


def end(code):
    """Ends a fork, as sys.exit, but without the interpreter's teardown, which takes seconds."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _request, _code = main(sys.argv[1]), None
    try:
        run(**_request)
    except SystemExit as _ended:
        _code = _ended.code
    except BaseException:
        traceback.print_exc()
        _code = 1
    end(_code)
