"""How a benchmark shows its figures: Markdown tables, medians with extremes, seconds."""

import statistics
import time


def head(columns):
    """The first two lines of a table, of a list of columns, or of text as "what | seconds"."""
    if isinstance(columns, str):
        columns = [name.strip() for name in columns.split("|")]
    return "| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|"


def row(*cells):
    """A line of a table."""
    return "|" + "".join(" {} |".format(cell) if cell != "" else " |" for cell in cells)


def table(columns, rows):
    """A whole table, with columns as of `head`, and rows that are lists of cells."""
    return "\n".join([head(columns), *(row(*cells) for cells in rows)])


def spread(values, form="{:.2f}"):
    """median [least, most]"""
    values = list(values)
    shown = statistics.median(values), min(values), max(values)
    return "{} [{}, {}]".format(*map(form.format, shown))


def timed(call, *given):
    """Seconds of wall time, seconds of the process's CPU time, and the call's result."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = call(*given)
    return time.perf_counter() - wall, time.process_time() - cpu, found
