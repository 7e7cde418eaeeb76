"""A client of a ZooKeeper server, by kazoo.

SUSPENDED (no connection) and LOST (the session is over) run the listeners; kazoo then connects
again by itself, with a new session where the earlier one is over. What a recipe made with the
earlier session is the recipe's to make again.

While there is no connection, a call fails at once rather than wait for one.
"""

import logging
import os
import time
from typing import Any, Dict, NamedTuple, Optional

from semisync.cluster.secret import read_secret
from semisync.cluster.zookeeper import client
from semisync.cluster.zookeeper.ownership import Ownership
from semisync.common.errors import BadInput

ANSWER_WITHIN = 10.0  # seconds, for one request
CONNECT_WITHIN = 15.0  # seconds
SESSION_TIMEOUT = 10.0  # seconds without a word after which a member counts as lost
# kazoo's own would wait up to an hour between two attempts.
RECONNECT = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 2.0}


class Access(NamedTuple):
    """The credentials for a server that authenticates its clients, or that uses TLS.

    Attributes:
        auth: `USER:PASSWORD` of the digest scheme; a job's nodes are then this user's alone, see
            `semisync.cluster.zookeeper.ownership`. None: the nodes are everybody's.
        ca: file with the certificates to trust; None: no TLS.
        certificate, key: files in PEM format, where the server asks for a certificate.
    """

    auth: Optional[str] = None
    ca: Optional[str] = None
    certificate: Optional[str] = None
    key: Optional[str] = None


NO_ACCESS = Access()


def read_auth(path: str) -> str:
    """`USER:PASSWORD` from a file that only its owner can read.

    Raises:
        UsageError: see `semisync.cluster.secret`.
        BadInput: it holds something else.
    """
    try:
        auth = read_secret(path).decode("utf-8")
    except UnicodeDecodeError:
        auth = ""
    user, colon, password = auth.partition(":")
    if not (user and colon and password) or "\n" in auth:
        raise BadInput("{} must hold one line, USER:PASSWORD".format(path))
    return auth


class Connection(client.Client):
    """A client that is connected once it is made.

    Args:
        hosts: HOST:PORT[,HOST:PORT...][/CHROOT]; the chroot is made where it does not exist.
        session_timeout: seconds; the server may have bounds of its own.
        access: an `Access`; by default everybody's.
        client_id: (session, password) of a session to take over, as kazoo has it.

    Raises:
        BadInput: no server answers, or none that accepts us.
    """

    def __init__(self, hosts, session_timeout=SESSION_TIMEOUT, access=NO_ACCESS, client_id=None):
        from kazoo import client as kazoo_client

        options: Dict[str, Any] = {"logger": _silent(), "connection_retry": RECONNECT}
        self._ownership: Optional[Ownership] = None
        if access.auth:
            from kazoo.security import make_digest_acl

            options["auth_data"] = [("digest", access.auth)]
            options["default_acl"] = [make_digest_acl(*access.auth.split(":", 1), all=True)]
            self._ownership = Ownership(self._ask, options["default_acl"])
        for path in (access.ca, access.certificate, access.key):
            if path is not None and not os.path.isfile(path):
                raise BadInput("{} is not a file: it should hold a certificate or key".format(path))
        if access.ca:
            # kazoo checks no host name by default.
            options.update(use_ssl=True, ca=access.ca, verify_certs=True, check_hostname=True)
            options.update(certfile=access.certificate, keyfile=access.key)
        self._states = kazoo_client.KazooState
        servers, slash, chroot = hosts.partition("/")
        self._kazoo = kazoo_client.KazooClient(
            servers, timeout=session_timeout, client_id=client_id, **options
        )
        self._timeout_error = self._kazoo.handler.timeout_exception
        self._errors = _errors(self._timeout_error)
        self._start(hosts, slash + chroot)

    def _start(self, hosts, chroot):
        deadline = time.monotonic() + CONNECT_WITHIN
        try:
            self._kazoo.start(CONNECT_WITHIN)
            self._ensure_until(deadline, chroot or "/")
            self._kazoo.chroot = chroot  # not before: kazoo warns of one that does not exist
        except (self._timeout_error, client.StoreError) as error:
            self.close()
            raise BadInput(
                "no ZooKeeper at {} accepts us within {:.0f} s ({}): check the address, its "
                "certificate and the user".format(hosts, CONNECT_WITHIN, error)
            ) from None

    def _ensure_until(self, deadline, path):
        """Makes a node, though the connection may be lost again at once."""
        while True:
            try:
                return self.ensure(path)
            except client.Unavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    @property
    def session(self):
        known = self._kazoo.client_id  # None as soon as the connection is lost, before the state
        return known[0] if known and self._kazoo.state == self._states.CONNECTED else None

    @property
    def client_id(self):
        """(session, password), with which any client can close the session."""
        return self._kazoo.client_id

    def listen(self, callback):
        self._kazoo.add_listener(lambda state: callback())

    def get(self, path, watch=None):
        value, stat = self._answer(self._kazoo.get_async, path, watch=_watcher(watch))
        return value, _stat(stat)

    def get_many(self, paths):
        self._must_be_connected()
        # All are sent before the first answer is awaited: one round trip, not one per node.
        asked = [(path, self._kazoo.get_async(path)) for path in paths]
        found = {}
        for path, answer in asked:
            try:
                value, stat = self._wait(answer)
            except client.NoNode:
                continue
            found[path] = value, _stat(stat)
        return found

    def stat(self, path, watch=None):
        stat = self._answer(self._kazoo.exists_async, path, watch=_watcher(watch))
        return None if stat is None else _stat(stat)

    def children(self, path, watch=None):
        return sorted(self._answer(self._kazoo.get_children_async, path, watch=_watcher(watch)))

    def create(self, path, value, ephemeral=False):
        self._answer(self._kazoo.create_async, path, value, ephemeral=ephemeral, makepath=True)

    def ensure(self, path):
        self._answer(self._kazoo.ensure_path_async, path)

    def put(self, path, value, version):
        return _stat(self._answer(self._kazoo.set_async, path, value, version))

    def delete(self, path, version):
        self._answer(self._kazoo.delete_async, path, version)

    def commit(self, operations):
        from kazoo.exceptions import KazooException, RolledBackError, RuntimeInconsistency

        transaction = self._kazoo.transaction()
        for operation in operations:
            if isinstance(operation, client.Check):
                transaction.check(operation.path, operation.version)
            elif isinstance(operation, client.Create):
                transaction.create(operation.path, operation.value)
            elif isinstance(operation, client.Put):
                transaction.set_data(operation.path, operation.value, operation.version)
            else:
                transaction.delete(operation.path, operation.version)
        failed = [
            error
            for error in self._answer(transaction.commit_async)
            if isinstance(error, KazooException)
        ]
        if failed:
            # ZooKeeper answers the operations around the failed one with these two.
            causes = [
                e for e in failed if not isinstance(e, (RolledBackError, RuntimeInconsistency))
            ]
            raise self._translated((causes or failed)[0], operations[0].path)

    def own(self, root):
        if self._ownership is not None:
            self._ownership.take(root)

    def close(self):
        self._kazoo.stop()
        self._kazoo.close()

    def _must_be_connected(self):
        if self.session is None:
            raise client.Unavailable("there is no connection to ZooKeeper")

    def _ask(self, request, path, *args):
        return self._answer(getattr(self._kazoo, request + "_async"), path, *args)

    def _answer(self, function, *args, **more):
        self._must_be_connected()
        return self._wait(function(*args, **more), args[0] if args else "")

    def _wait(self, answer, path=""):
        try:
            return answer.get(timeout=ANSWER_WITHIN)
        except tuple(self._errors) as error:
            raise self._translated(error, path) from None

    def _translated(self, error, path):
        for theirs, ours in self._errors.items():
            if isinstance(error, theirs):
                return ours("ZooKeeper, {}: {}".format(path, type(error).__name__))
        return error


def _silent():
    """A log for kazoo, which would print a line per attempt to connect."""
    logger = logging.getLogger("semisync.kazoo")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _errors(timeout_error):
    """kazoo's errors, and their counterparts here."""
    from kazoo import exceptions as kazoo

    return {
        kazoo.NoNodeError: client.NoNode,
        kazoo.NodeExistsError: client.NodeExists,
        kazoo.BadVersionError: client.BadVersion,
        kazoo.NotEmptyError: client.BadVersion,
        kazoo.NoAuthError: client.Forbidden,
        kazoo.AuthFailedError: client.Forbidden,
        kazoo.InvalidACLError: client.Forbidden,
        kazoo.NoChildrenForEphemeralsError: client.Forbidden,
        kazoo.ConnectionLoss: client.Unavailable,
        kazoo.ConnectionClosedError: client.Unavailable,
        kazoo.SessionExpiredError: client.Unavailable,
        kazoo.SessionMovedError: client.Unavailable,
        kazoo.OperationTimeoutError: client.Unavailable,
        timeout_error: client.Unavailable,
    }


class _Watcher:
    """A callback in kazoo's form; kazoo keeps equal ones at a node once."""

    def __init__(self, callback):
        self._callback = callback

    def __call__(self, event):
        self._callback()

    def __eq__(self, other):
        return isinstance(other, _Watcher) and self._callback == other._callback

    def __hash__(self):
        return hash(self._callback)


def _watcher(watch):
    return None if watch is None else _Watcher(watch)


def _stat(stat):
    return client.Stat(stat.version, stat.ephemeralOwner)
