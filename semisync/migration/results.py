"""The parts' results, kept so that a part is not repeated.

    OUT/parts/NAME.json    {"identity": SHA-256 of the part's inputs, "found": its result}

A part that is interrupted leaves no result. `begin` leaves the identity alone, for a part that can
go on where it was.
"""

import hashlib
import json
import os
from typing import Any, Dict, Optional

from semisync.common import json_text
from semisync.common.errors import UsageError
from semisync.common.files import write_json

FOLDER = "parts"


class Results:
    """The results of one output folder.

    Args:
        out: the folder; new, empty, or an earlier migration's.

    Attributes:
        folder: where they are.

    Raises:
        UsageError: it holds something else.
    """

    def __init__(self, out: str) -> None:
        self.folder = os.path.join(out, FOLDER)
        if os.path.isfile(out) or (os.path.isdir(out) and os.listdir(out) and not self._is_ours()):
            raise UsageError(
                "{} holds something other than a migration's output; name a new folder".format(out)
            )
        os.makedirs(self.folder, exist_ok=True)

    def find(self, name: str, made_from: Any) -> Optional[Dict[str, Any]]:
        """The result of a part that was made from the same; None if there is none."""
        kept = self._read(name)
        return kept.get("found") if kept.get("identity") == _identity(made_from) else None

    def last(self, name: str) -> Dict[str, Any]:
        """The last result of a part, whatever it was made from; {} if there is none."""
        return self._read(name).get("found") or {}

    def keep(self, name: str, made_from: Any, found: Dict[str, Any]) -> None:
        """Keeps the result of a part."""
        write_json(self._path(name), {"identity": _identity(made_from), "found": found})

    def begin(self, name: str, made_from: Any) -> bool:
        """Records that a part begins; returns whether one made from the same had begun already."""
        began = self._read(name).get("identity") == _identity(made_from)
        write_json(self._path(name), {"identity": _identity(made_from)})
        return began

    def _is_ours(self) -> bool:
        return os.path.isdir(self.folder)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name + ".json")

    def _read(self, name: str) -> Dict[str, Any]:
        try:
            kept = json_text.read(self._path(name))
        except (OSError, ValueError):  # none, or one that is not whole: the part is made again
            return {}
        return kept if isinstance(kept, dict) else {}


def _identity(made_from: Any) -> str:
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
