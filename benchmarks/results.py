"""The output of a benchmark as a file: benchmarks/results/NAME.json.

    schema      semisync.benchmark/1
    name        of the run, which the pages use
    command     how to repeat it
    date        the day it ended, UTC
    machine     processor, processors, system, core_milliseconds (see core_speed.py), load before
    versions    of Python and of the packages that matter
    origin      where the figures were read from, if they were not recorded by `benchmarks.run`
    said        every line that is not part of a table
    tables      {name: {"columns": [...], "rows": [[...], ...]}}

Cells are text as printed: the benchmark knows how many digits mean something, and how to write a
spread. Tables of one command have their names from `benchmarks.commands`, in the order of printing.
"""

import json
import os
import pathlib
import platform
import re

from benchmarks import tables

FOLDER = pathlib.Path(__file__).with_name("results")
SCHEMA = "semisync.benchmark/1"

_TEXTS = re.compile(r'\[\n\s+("(?:[^"\\]|\\.)*"(?:,\n\s+"(?:[^"\\]|\\.)*")*)\n\s+\]')


def read(name, folder=FOLDER):
    """The result of that name."""
    with open(pathlib.Path(folder) / (name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def write(result, folder=FOLDER):
    """Keeps a result, a row of a table per line."""
    text = json.dumps(result, indent=1, ensure_ascii=False)
    text = _TEXTS.sub(lambda found: "[" + re.sub(r"\n\s+", " ", found.group(1)) + "]", text)
    path = pathlib.Path(folder) / (result["name"] + ".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def parsed(text):
    """(lines outside of tables, [{"columns", "rows"}]) of a Markdown text."""
    said, tables, lines = [], [], text.splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith("|"):
            said.append(lines[at])
            at += 1
            continue
        block = []
        while at < len(lines) and lines[at].startswith("|"):
            block.append(_cells(lines[at]))
            at += 1
        tables.append({"columns": block[0], "rows": block[2:]})  # the second line is |---|
    return [line for line in said if line.strip()], tables


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def markdown(table):
    """A table as Markdown."""
    return tables.table(table["columns"], table["rows"])


def caption(result):
    """One sentence: the command, the day, the machine, the versions."""
    machine = result["machine"]
    about = [f"{machine['processors']} processors ({machine['processor']}, {machine['system']})"]
    if "core_milliseconds" in machine:
        about.append(f"one core sorts 4 million float64 in {machine['core_milliseconds']} ms")
    if "load" in machine:
        about.append(f"load before the run {machine['load']}")
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"`{result['command']}`, {result['date']}; {'; '.join(about)}; {versions}."


def machine(core_milliseconds):
    """This machine."""
    return {
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "core_milliseconds": round(core_milliseconds),
        "load": round(os.getloadavg()[0], 1),
    }


def processor():
    """The name of this machine's processor."""
    with open("/proc/cpuinfo") as lines:
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
