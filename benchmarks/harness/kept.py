"""Runs that are kept in a file of JSON lines, so that what was carried out is not repeated."""

import json
import os


class Kept:
    """Runs by their keys.

    Args:
        path: the file, which may be there; None: nothing is kept.
        names: the keys of a line that identify a run.
    """

    def __init__(self, path, names):
        self._path, self._names, self._lines = path, names, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self._lines = {self._key(line): line for line in map(json.loads, file)}

    def _key(self, line):
        return tuple(line[name] for name in self._names)

    def line(self, about, carry_out):
        """The line of a run: `about`, and the result of `carry_out`, called if the run is new."""
        key = self._key(about)
        if key not in self._lines:
            self._lines[key] = {**about, **carry_out()}
            if self._path:
                with open(self._path, "a", encoding="utf-8") as file:
                    file.write(json.dumps(self._lines[key]) + "\n")
        return self._lines[key]
