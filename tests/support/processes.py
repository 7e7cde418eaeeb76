"""The processes that run; one that has ended may still wait to be noticed, and has no command."""

import psutil


def running():
    """Their numbers."""
    return {each.pid for each in _processes("status")}


def running_with(words, below):
    """The numbers of those below a process whose command line has these words."""
    children = {each.pid for each in psutil.Process(below).children(recursive=True)}
    return [
        each.pid
        for each in _processes("status", "cmdline")
        if each.pid in children and words in " ".join(each.info["cmdline"] or [])
    ]


def _processes(*facts):
    processes = psutil.process_iter(list(facts))
    return [each for each in processes if each.info["status"] != psutil.STATUS_ZOMBIE]
