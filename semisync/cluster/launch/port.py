"""A port for a process that is not there yet, and the name of this machine for the others.

The launcher holds a bound socket that never listens. The command's server may bind to the same port
(both set SO_REUSEADDR), again and again, but the kernel gives the port to nobody else.
"""

import ipaddress
import socket

from semisync.common.errors import SemisyncError, UsageError


class HeldPort:
    """A port of this machine, held until `close`.

    Args:
        number: the port to hold if it is free; 0: any.
    """

    def __init__(self, number=0):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("", number))
        except OSError:
            self._socket.bind(("", 0))
        self.number = self._socket.getsockname()[1]

    def close(self):
        self._socket.close()


def own_host(hosts):
    """The address of this machine on the way to the first of some hosts.

    Args:
        hosts: HOST:PORT[,HOST:PORT...][/CHROOT], where the members meet.
    """
    host, colon, port = hosts.partition("/")[0].partition(",")[0].rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise UsageError(
            "--zookeeper takes HOST:PORT[,HOST:PORT...][/PATH], not {!r}".format(hosts)
        )
    try:
        # Connecting a datagram socket sends nothing: the kernel only chooses the way.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, int(port), type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as way:
            way.connect(address)
            return way.getsockname()[0]
    except OSError as error:
        raise SemisyncError("{} cannot be reached: {}".format(host, error.strerror)) from None


def is_loopback(address):
    """Whether only its own machine can reach HOST:PORT."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def with_port(host, port):
    """HOST:PORT, an IPv6 address in brackets."""
    return "[{}]:{}".format(host, port) if ":" in host else "{}:{}".format(host, port)
