"""The options with which a command reaches ZooKeeper."""

import re

from semisync.cluster.zookeeper.connection import (
    SESSION_TIMEOUT,
    Access,
    Connection,
    read_auth,
)
from semisync.common.errors import UsageError


def add_access(parser):
    """Declares the options of `Access`."""
    parser.add_argument("--auth", metavar="FILE", help="USER:PASSWORD for ZooKeeper, mode 600")
    parser.add_argument("--tls-ca", metavar="FILE", help="certificates to trust; turns TLS on")
    parser.add_argument("--tls-certificate", metavar="FILE", help="of this machine")
    parser.add_argument("--tls-key", metavar="FILE", help="of that certificate")


def root_of(job):
    """The path of a job's nodes."""
    if not job or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", job):
        raise UsageError("--job takes letters, digits, dots, dashes and underscores")
    return "/semisync/" + job


def connect(args, session_timeout=SESSION_TIMEOUT):
    """The `Connection` of the parsed options `args`."""
    auth = read_auth(args.auth) if args.auth else None
    access = Access(auth, args.tls_ca, args.tls_certificate, args.tls_key)
    return Connection(args.zookeeper, session_timeout, access)
