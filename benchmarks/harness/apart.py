"""Calls in an interpreter of their own, which has nothing that this one has loaded or cached."""

import contextlib
import multiprocessing


@contextlib.contextmanager
def beside(function, *given, start="spawn"):
    """The pipe to `function(pipe, *given)`, which runs in a process of its own during the block.

    Args:
        function: at the top of a module.
        start: "fork" where it may share what this process has loaded.
    """
    context = multiprocessing.get_context(start)
    ours, theirs = context.Pipe()
    process = context.Process(target=function, args=(theirs, *given))
    process.start()
    # Only the child may hold this end: when it dies, reading ours ends with EOFError.
    theirs.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def apart(call, *given, seconds=None, start="spawn"):
    """Makes the call in a process of its own; returns its result, or raises its error.

    Args:
        seconds: its time limit; None: none.

    Raises:
        TimeoutError: it took longer.
        EOFError: its process died.
    """
    with beside(_send, call, given, start=start) as pipe:
        if not pipe.poll(seconds):
            raise TimeoutError(f"not done in {seconds} s")
        found, error = pipe.recv()
    if error is not None:
        raise error
    return found


def _send(pipe, call, given):
    try:
        pipe.send((call(*given), None))
    except Exception as error:
        pipe.send((None, error))
