"""`semisync status`: the status of a running job, in lines, as JSON or over HTTP."""

import argparse
import time

from semisync.answers import add_json, answer
from semisync.cluster.status.text import lines
from semisync.cluster.zookeeper.options import add_access, connect, root_of
from semisync.common import exit_codes
from semisync.common.errors import UsageError
from semisync.common.terminal import say

EXAMPLES = """
examples:
  semisync status --zookeeper zk1:2181,zk2:2181 --job ctr-7
  watch semisync status --zookeeper zk1:2181,zk2:2181 --job ctr-7
  semisync status --zookeeper zk1:2181 --job ctr-7 --serve 10.0.0.7:8080
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument(
        "--zookeeper",
        required=True,
        metavar="HOST:PORT,...[/PATH]",
        help="where its launchers meet",
    )
    parser.add_argument("--job", required=True, metavar="ID", help="which job")
    add_json(parser, "the status")
    parser.add_argument(
        "--serve",
        metavar="HOST:PORT",
        help="serve the lines, /status.json and /metrics there until Ctrl-C",
    )
    add_access(parser)


def run(args: argparse.Namespace) -> int:
    """Shows the status, or serves it until Ctrl-C; returns the exit code."""
    from semisync.cluster.status.document import read_status

    if args.serve and args.json:
        raise UsageError("--serve has the document at /status.json: leave out --json")

    client = connect(args)
    try:

        def read():
            return read_status(client, root_of(args.job), args.job)

        found = read()
        if args.serve:
            _serve(args.serve, read)
        answer(args.json, found, lines(found))
        return exit_codes.DONE
    finally:
        client.close()


def _serve(place, read):
    from semisync.cluster.status.server import StatusServer

    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError("--serve takes HOST:PORT, not {!r}".format(place))
    with StatusServer(read, host.strip("[]"), int(port)) as server:
        say("the status of the job is at {}".format(server.url), flush=True)
        while True:
            time.sleep(3600)
