"""The job's page (`semisync.cluster.status`), served by the launcher that leads.

Whoever leads has it at the same port of its own machine, and says where.
"""

import functools

from semisync.cluster.status.published import read_status
from semisync.cluster.status.server import StatusServer
from semisync.common.errors import SemisyncError


class LeadersPage:
    """Open while the launcher leads.

    Args:
      client, root: of the job.
      host, port: where it listens.
      say: takes a sentence.
    """

    def __init__(self, client, root, host, port, say):
        job = root.rpartition("/")[2]
        self._read = functools.partial(read_status, client, root, job)
        self._place, self._say = (host, port), say
        self._server = None
        self._refused = ""  # why it could not listen

    @property
    def url(self):
        """Where it is; None while it is closed."""
        return self._server and self._server.url

    def follow(self, leads):
        """Opens or closes it."""
        if leads and self._server is None:
            self._open()
        elif not leads:
            self.close()

    def _open(self):
        try:
            self._server = StatusServer(self._read, *self._place)
        except SemisyncError as error:
            if str(error) != self._refused:  # it is tried again, and said once
                self._say("the job has no page: {}".format(error))
            self._refused = str(error)
            return
        self._say("the page of the job is at {}".format(self.url))

    def close(self):
        server, self._server = self._server, None
        if server is not None:
            server.close()
