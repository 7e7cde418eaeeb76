"""What is said of an error that nobody foresaw."""

import glob
import os


def sentence(args, error):
    """One sentence: what was being read, what happened, where to report it.

    args: the parsed arguments, as far as they were; those that name files are what was being read.
    """
    named = [text for value in vars(args).values() for text in _texts(value)]
    files = ", ".join(dict.fromkeys(filter(_is_file, named))) or "the arguments"
    reason = " ".join("{}: {}".format(type(error).__name__, error).split())[:300]
    return (
        "internal error while reading {}: {}; this is a defect of semisync and no answer: please "
        "report it where you got semisync from, with the lines below".format(files, reason)
    )


def _texts(value):
    """The texts of an argument, which may be one of several."""
    several = value if isinstance(value, list) else [value]
    return [one for one in several if isinstance(one, str) and one]


def _is_file(text):
    """Whether it names a file, a folder, a checkpoint's prefix or a pattern that matches some."""
    places = (text, text + ".index")
    return any(map(os.path.exists, places)) or (glob.has_magic(text) and bool(glob.glob(text)))
