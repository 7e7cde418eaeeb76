"""What a node serves of one manifest, and the paths at which it does."""

import os
from typing import Any, Dict
from urllib.parse import quote

from semisync.cluster.files.manifest import File, Manifest


class Share:
    """The files of a manifest, in the folder that it was made from.

    Args:
        manifest: the `Manifest`.
        folder: str or path.

    Attributes:
        folder: str.
        digest: of the manifest.
        manifest: its bytes.
        paths: {the path of a request: File}; nothing else is served.
    """

    def __init__(self, manifest: Manifest, folder: Any) -> None:
        self.folder = os.fspath(folder)
        self.digest = manifest.digest
        self.manifest = manifest.to_bytes()
        self.paths: Dict[str, File] = {
            file_path(self.digest, file.path): file for file in manifest.files
        }


def file_path(digest: str, path: str) -> str:
    """The path of a request for a file of a manifest."""
    return "/{}/files/{}".format(digest, quote(path, safe="/"))


def manifest_path(digest: str) -> str:
    """The path of a request for a manifest."""
    return "/{}/manifest".format(digest)


def configuration_path(name: str, version: int) -> str:
    """The path of a request for a version of a configuration."""
    return "/configurations/{}/{}".format(name, version)
