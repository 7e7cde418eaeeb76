"""The folder in which a launcher's command runs, where the job has files.

A launcher
1. makes a folder for each generation, and fetches the files there before it tells the leader that
   it is ready; a launcher that comes again fetches them again;
2. has its command run there. A configuration is a file beside it, which `SEMISYNC_CONFIG` names:
   the one of the manifest, or the newest version that was published for this run. It is replaced
   as a whole when the next one is published;
3. removes the fetched files when it ends. The command's own output stays, and the launcher says
   where.
"""

import contextlib
import os
import shutil
import tempfile
import threading
from typing import Any, Callable, Dict, List, Optional

from semisync.cluster.files.configurations import Configuration
from semisync.cluster.files.download import Download, Source, Stopped
from semisync.cluster.files.manifest import LEFT_OUT
from semisync.cluster.launch.shipment import CONFIG, FILES
from semisync.common.errors import SemisyncError
from semisync.common.files import write_bytes


class Workplace:
    """The folders of a launcher.

    Args:
        say: for a sentence to people.
        told: called, in another thread, when the files are there or will not come.
    """

    def __init__(self, say: Callable[[str], None], told: Callable[[], None]) -> None:
        self._say, self._told = say, told
        self._top = ""
        self._about: Optional[Dict[str, Any]] = None  # the newest shipment
        self._number = 0  # of the generation whose files are there or on their way
        self._fetching: Optional[threading.Thread] = None
        self._stopped = threading.Event()
        self._manifests: Dict[str, Any] = {}  # {folder: the files fetched into it}
        self.version = 0  # of the configuration that is there; 0: the manifest's
        self._is_configured = False
        self.failure: Optional[str] = None

    def has_files(self, number: int, about: Optional[Dict[str, Any]], seconds: float) -> bool:
        """Whether the files of a generation are there; else they are fetched from now on.

        Args:
            number: of the generation.
            about: the files handed out and where, see `shipment`; None: nothing.
            seconds: limit of the download; after it `failure` has the reason.
        """
        self._about = about
        if about is None:
            return True
        if self._number != number:
            self._stop()
            self._top = self._top or tempfile.mkdtemp(prefix="semisync-job-")
            self._number, self.version, self._is_configured = number, 0, False
            os.makedirs(os.path.join(self._folder, FILES))
            self._fetching = threading.Thread(
                target=self._fetch, args=(about["digest"], self._folder, seconds), daemon=True
            )
            self._fetching.start()
        return self._folder in self._manifests

    @property
    def is_ready(self) -> bool:
        """Whether the command can start, once the files are there."""
        return self._is_configured or not self.config

    def _fetch(self, digest, folder, seconds):
        said: List[str] = []

        def say(why):
            if not said:
                self._say("the job's files do not come: {}; trying again".format(why))
            said.append(why)

        try:
            download = Download(digest, self._source, folder, seconds, self._stopped, say)
            self._manifests[folder] = download.run()
        except (Stopped, SemisyncError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            self.failure = str(error) or None  # `Stopped` has no text, and is no failure
        self._told()

    def _source(self):
        about = self._about
        return about and Source(about["url"], about["token"])

    @property
    def _folder(self) -> str:
        return os.path.join(self._top, "generation-{}".format(self._number))

    @property
    def folder(self) -> Optional[str]:
        """The command's working folder; None: the launcher's own."""
        return os.path.join(self._folder, FILES) if self._about and self._about["files"] else None

    @property
    def config(self) -> str:
        """The path of the configuration, "" where the job has none."""
        if not (self._about and self._about["config"]):
            return ""
        return os.path.join(self._folder, CONFIG, self._about["config"])

    def configure(self, found: Optional[Configuration]) -> None:
        """Replaces the configuration by a newer version, if there is one."""
        self._is_configured = True
        if found is not None and found.version > self.version and self.config:
            write_bytes(self.config, found.document)
            self.version = found.version
            self._say("version {} of the configuration is there".format(found.version))

    def _stop(self) -> None:
        if self._fetching is not None:
            self._stopped.set()
            self._fetching.join()
            self._stopped = threading.Event()
            self._fetching = None

    def close(self) -> None:
        """Ends a download, and removes the fetched files."""
        self._stop()
        for folder, manifest in self._manifests.items():
            for file in manifest.files:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, file.path))
        self._manifests = {}
        for above, _, _ in os.walk(self._top, topdown=False):
            with contextlib.suppress(OSError):  # something is left in it
                if os.path.basename(above) in LEFT_OUT:
                    shutil.rmtree(above)
                else:
                    os.rmdir(above)
        if self._top and os.path.isdir(self._top):
            self._say("what the command wrote beside the job's files stays in " + self._top)
        self._top = ""
