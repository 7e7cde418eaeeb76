"""What runs in an interpreter of its own, with nothing of what this one has loaded or cached."""

import contextlib
import multiprocessing


@contextlib.contextmanager
def beside(function, *given, start="spawn"):
    """The pipe to `function(pipe, *given)`, which runs in a process of its own during the block.

    Args:
        function: at the top of a module.
        start: "fork" where it may have what this process has.
    """
    context = multiprocessing.get_context(start)
    ours, theirs = context.Pipe()
    process = context.Process(target=function, args=(theirs, *given))
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def apart(call, *given, seconds=None, start="spawn"):
    """What the call gives, or raises, there.

    Args:
        seconds: how long it may take; None: as long as it does.

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
