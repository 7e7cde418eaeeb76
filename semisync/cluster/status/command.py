"""`semisync status`: how a running job does, once or live."""

import argparse
import json
import sys
import time

from semisync.cluster.status.document import read_document
from semisync.cluster.status.text import lines
from semisync.cluster.zookeeper.options import add_access, connect
from semisync.common import exit_codes
from semisync.common.errors import BadInput, SemisyncError, UsageError

EVERY = 2.0  # seconds
_LARGEST = 1 << 20  # bytes of a document
_SECONDS = 10.0  # for an answer
_HOME_AND_CLEAR = "\033[H\033[J"
EXAMPLES = """
examples:
  semisync status --zookeeper zk1:2181,zk2:2181 --job ctr-7
  semisync status --url http://10.0.0.7:8080 --json
  semisync status --zookeeper zk1:2181 --job ctr-7 --serve 10.0.0.7:8080
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = EXAMPLES
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--zookeeper", metavar="HOST:PORT,...[/PATH]", help="where its launchers meet"
    )
    where.add_argument("--url", help="of the page that the job's chief or --serve shows")
    parser.add_argument("--job", metavar="ID", help="with --zookeeper: which job")
    parser.add_argument("--json", action="store_true", help="print the document once, for programs")
    parser.add_argument(
        "--once", action="store_true", help="print it once; the default where output is no terminal"
    )
    parser.add_argument(
        "--serve",
        metavar="HOST:PORT",
        help="with --zookeeper: serve these lines, /status.json and /metrics there until Ctrl-C",
    )
    add_access(parser)


def run(args: argparse.Namespace) -> int:
    """Shows it; returns the exit code."""
    if args.url:
        if args.serve or args.job:
            raise UsageError("--job and --serve go with --zookeeper, not with --url")
        return _show(args, lambda: _fetch(args.url))
    if not args.job:
        raise UsageError("--job is missing: the id that its launchers were given")
    from semisync.cluster.status.published import read_status

    client = connect(args)
    try:

        def read():
            return read_status(client, "/semisync/" + args.job, args.job)

        return _serve(args.serve, read) if args.serve else _show(args, read)
    finally:
        client.close()


def _show(args, read) -> int:
    if args.json:
        print(json.dumps(read(), sort_keys=True))
        return exit_codes.DONE
    if args.once or not sys.stdout.isatty():
        print("\n".join(lines(read())))
        return exit_codes.DONE
    shown = lines(read())
    while True:
        print(_HOME_AND_CLEAR + "\n".join(shown), flush=True)
        time.sleep(EVERY)
        try:
            shown = lines(read())
        except SemisyncError as error:  # it may come back
            shown = [*shown, "", str(error)]


def _serve(place, read) -> int:
    from semisync.cluster.status.server import StatusServer

    host, _, port = place.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError("--serve takes HOST:PORT, not {!r}".format(place))
    read()  # or the page of a job that does not exist would be served
    with StatusServer(read, host.strip("[]"), int(port)) as server:
        print("the page of the job is at {}".format(server.url), flush=True)
        while True:
            time.sleep(3600)


def _fetch(url):
    import http.client
    import urllib.request

    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise UsageError("{!r} is no page: http://HOST:PORT was expected".format(url))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url + "/status.json", timeout=_SECONDS) as answer:
            data = answer.read(_LARGEST)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise BadInput("{} does not tell its status: {}".format(url, error)) from error
    return read_document(data, url)
