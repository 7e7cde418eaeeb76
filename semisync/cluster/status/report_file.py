"""The chief's reports of the training, in a file between its process and its launcher.

The launcher names the file in SEMISYNC_STATUS. The optimizer's hook of the chief
(`semisync.cluster.status.reporter`) puts each report, as JSON, in place of the one before; the
launcher beside it passes on what is new.
"""

import os
import shutil
import tempfile

from semisync.common import json_text
from semisync.common.files import write_json

VARIABLE = "SEMISYNC_STATUS"
LARGEST = 1 << 19  # bytes; a worker takes about 20


def to_file(path):
    """For a `StatusHook`: a function that writes reports to a file."""

    def write(training):
        write_json(path, training)

    return write


class ReportFile:
    """The launcher's side: a file that only this user can read, until it is closed."""

    def __init__(self):
        self._folder = ""
        self._known = None  # inode and time of the file that was read last

    def variables(self):
        """The environment variables that name it."""
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix="semisync-status-")
        return {VARIABLE: self._path}

    @property
    def _path(self):
        return os.path.join(self._folder, "training.json")

    def news(self):
        """The chief's latest report, a dict, if it is new; else None.

        A file that is not a report, or is too large for ZooKeeper, counts as none.
        """
        if not self._folder:
            return None
        try:
            with open(self._path, "rb") as file:
                stat = os.fstat(file.fileno())
                known = stat.st_ino, stat.st_mtime_ns
                if known == self._known or stat.st_size > LARGEST:
                    return None
                self._known = known
                said = json_text.loads(file.read().decode("utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return said if isinstance(said, dict) else None

    def close(self):
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
