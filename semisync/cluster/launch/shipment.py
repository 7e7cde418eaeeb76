"""The shipment of the chief's launcher: files and the first configuration of the job.

The launcher that was given `--ship` or `--config`
1. copies the files, so that whoever edits them changes nothing in the job that runs;
2. serves the copy (`semisync.cluster.files.server`);
3. records the URL, the token and the digest of the manifest in its member's node. The leader copies
   them into the generation, where the others find them (`workplace`).

In the manifest the files are below `files/`, the configuration is in `config/`.
"""

import os
import shutil
import tempfile
from typing import Any, Dict, List, Optional, Tuple

from semisync.cluster.files.configurations import checked
from semisync.cluster.files.manifest import copy
from semisync.common.errors import BadInput

FILES, CONFIG = "files", "config"


class Shipment:
    """Hands out from the start until it is closed.

    Args:
        paths: of files and folders. A folder arrives under its name, or its contents do where the
            path ends in a slash or is ".".
        config: path of the configuration, or None.
        host: by which the others reach this machine.

    Attributes:
        about: its record for the others.

    Raises:
        BadInput: a file cannot be handed out.
        UsageError: nobody can listen at that host here.
    """

    def __init__(self, paths: List[str], config: Optional[str], host: str) -> None:
        from semisync.cluster.files.server import FileServer  # needs aiohttp

        self._folder = tempfile.mkdtemp(prefix="semisync-ship-")
        self._server: Any = None
        try:
            manifest = copy([*map(_shipped, paths), *_first(config)], self._folder)
            self._server = FileServer(manifest, self._folder, host)
        except BaseException:
            self.close()
            raise
        self.about: Dict[str, Any] = {
            "digest": manifest.digest,
            "url": self._server.url,
            "token": self._server.token,
            "files": bool(paths),
            "config": os.path.basename(config) if config else None,
        }

    def close(self) -> None:
        """Hands out no more."""
        if self._server is not None:
            self._server.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _shipped(path: str) -> Tuple[str, str]:
    name = os.path.basename(path)
    return path, FILES if name in ("", ".", "..") else "{}/{}".format(FILES, name)


def _first(config: Optional[str]) -> List[Tuple[str, str]]:
    if config is None:
        return []
    read_config(config)
    return [(config, "{}/{}".format(CONFIG, os.path.basename(config)))]


def read_config(path: str) -> bytes:
    """The configuration in a file.

    Raises:
        BadInput: it cannot be read, or is no configuration.
    """
    try:
        with open(path, "rb") as file:
            return checked(file.read(), path)
    except OSError as error:
        raise BadInput("{}: it cannot be read: {}".format(path, error.strerror)) from error
