"""What a user changes in a job, as it stands beside the job in NAME.change.

A block is one change. Its lines "- old" are consecutive lines of the script, as they stand there,
indentation included, and at one place only; its lines "+ new" take their place. A blank line ends
a block; a line that begins with "#" is a remark. For example

    # the optimizer
    -     opt = tf.train.AdagradOptimizer(0.1)
    +     opt = semisync.GlobalBatchOptimizer(tf.train.AdagradOptimizer(0.1), batches_per_step=2)

`python -m tests.support.job_changes` prints how many lines each job gives up and gets.
"""

import collections
import difflib
import pathlib
import shlex

SCRIPTS = pathlib.Path(__file__).parents[1] / "jobs" / "scripts"

Block = collections.namedtuple("Block", "old new")  # lists of lines


def blocks(text):
    """The blocks of a .change file.

    Raises:
        ValueError: a line is of none of the kinds above, or a block has no old line.
    """
    found, fresh = [], True
    for number, line in enumerate(text.splitlines(), 1):
        mark, rest = line[:1], line[2:]
        if mark in ("", "#", "$"):
            fresh = fresh or not mark
            continue
        if mark not in ("-", "+") or line[1:2] not in ("", " "):
            raise ValueError('line {}: neither "- old" nor "+ new": {}'.format(number, line))
        if fresh:
            found.append(Block([], []))
        fresh = False
        (found[-1].old if mark == "-" else found[-1].new).append(rest)
    for block in found:
        if not block.old:
            raise ValueError("a block has no old line: {}".format("\n".join(block.new)))
    return found


def apply(script, change):
    """The script after the change, both strings.

    Raises:
        ValueError: the old lines of a block are not in the script, or more than once.
    """
    lines = script.splitlines()
    for old, new in blocks(change):
        places = [i for i in range(len(lines)) if lines[i : i + len(old)] == old]
        if len(places) != 1:
            raise ValueError("found {} times, not once:\n{}".format(len(places), "\n".join(old)))
        lines[places[0] : places[0] + len(old)] = new
    return "\n".join(lines) + "\n"


def commands(change):
    """The commands of a .change file, each a list of words."""
    return [shlex.split(line[1:]) for line in change.splitlines() if line.startswith("$")]


def size(before, after):
    """How many lines of `before` are not in `after`, and of `after` not in `before`."""
    diff = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return tuple(sum(line.startswith(mark) for line in diff) for mark in ("- ", "+ "))


def read(name):
    """The script of a job and its change, both strings."""
    return (SCRIPTS / (name + ".py")).read_text(), (SCRIPTS / (name + ".change")).read_text()


def main():
    for path in sorted(SCRIPTS.glob("*.change")):
        script, change = read(path.stem)
        removed, added = size(script, apply(script, change))
        print("{:24} -{} +{}".format(path.stem, removed, added))


if __name__ == "__main__":
    main()
