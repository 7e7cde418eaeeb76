"""A real ZooKeeper for the tests: one server or three, on this machine, until they are stopped.

The jars are Debian's: of the system, or unpacked in .zookeeper by `make zookeeper`. Ports are the
kernel's choice, and held as `semisync.cluster.launch.port` holds them.
"""

import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from semisync.cluster.launch.port import HeldPort
from tests.support.require import ROOT, skip_without
from tests.support.waiting import until

FOLDERS = (ROOT / ".zookeeper/usr/share/java", pathlib.Path("/usr/share/java"))
JARS = """
    zookeeper zookeeper-jute slf4j-api slf4j-simple commons-cli commons-io metrics-core snappy-java
    netty-buffer netty-codec netty-common netty-handler netty-resolver netty-transport
    netty-transport-native-epoll netty-transport-native-unix-common
    jackson-core jackson-databind jackson-annotations
"""
JAVA = ["java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
TICK = 200  # ms; a session lasts two ticks at least
START_WITHIN = 60.0  # seconds


def classpath():
    """The jars; skips the test where there is no Java or no ZooKeeper."""
    if shutil.which("java") is None:
        skip_without("zookeeper", "there is no java")
    found = []
    for name in JARS.split():
        paths = [folder / (name + ".jar") for folder in FOLDERS]
        found += [str(path) for path in paths if path.exists()][:1]
        if name in ("zookeeper", "zookeeper-jute") and not any(p.exists() for p in paths):
            skip_without("zookeeper", "there is no {}.jar: run make zookeeper".format(name))
    return ":".join(found)


class ZooKeeper:
    """Servers that run; `hosts` is how to reach them.

    Args:
        folder: a pathlib directory for their data and logs.
        servers: 1 or 3.
        keystore: a PEM file with a key and its certificate, for TLS at `secure_hosts`; or None.
        machines: where each server runs, objects with `address` and `prefix`, the words in front
            of a command that runs there; None: all on this machine's loopback.
    """

    def __init__(self, folder, servers=1, keystore=None, machines=None):
        self._classpath = classpath()
        self._folder = folder
        self._keystore = keystore
        self._machines = machines
        self._held = [[HeldPort() for _ in range(4)] for _ in range(servers)]
        self._ports = [[held.number for held in of_one] for of_one in self._held]
        self._running = {}
        for number in range(servers):
            self.start(number)
        self.wait()

    @property
    def hosts(self):
        return ",".join(
            "{}:{}".format(self._address(n), ports[0]) for n, ports in enumerate(self._ports)
        )

    @property
    def secure_hosts(self):
        return ",".join("127.0.0.1:{}".format(ports[3]) for ports in self._ports)

    def _address(self, number):
        return self._machines[number].address if self._machines else "127.0.0.1"

    def start(self, number):
        """Starts a server, or starts it again."""
        folder = self._folder / "server-{}".format(number)
        folder.mkdir(exist_ok=True)
        lines = [
            "dataDir={}".format(folder),
            "clientPort={}".format(self._ports[number][0]),
            "clientPortAddress={}".format(self._address(number)),
            "admin.enableServer=false",
            "4lw.commands.whitelist=srvr",
            "tickTime={}".format(TICK),
            "maxSessionTimeout=60000",
            "maxClientCnxns=0",
        ]
        if self._keystore:
            lines += [
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                "secureClientPort={}".format(self._ports[number][3]),
                "secureClientPortAddress=127.0.0.1",
                "ssl.keyStore.location={}".format(self._keystore),
                "ssl.clientAuth=none",
            ]
        if len(self._ports) > 1:
            (folder / "myid").write_text(str(number))
            lines += ["initLimit=50", "syncLimit=25"]
            lines += [
                "server.{}={}:{}:{}".format(n, self._address(n), ports[1], ports[2])
                for n, ports in enumerate(self._ports)
            ]
        (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        prefix = self._machines[number].prefix if self._machines else []
        with open(str(folder / "log"), "ab") as log:
            self._running[number] = subprocess.Popen(
                [*prefix, *JAVA, "-cp", self._classpath, main, str(folder / "zoo.cfg")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait(self):
        """Waits until every server serves."""
        deadline = time.monotonic() + START_WITHIN
        for number in self._running:
            while self.mode(number) is None:
                assert time.monotonic() < deadline, self._log(number)
                assert self._running[number].poll() is None, self._log(number)
                time.sleep(0.05)

    def mode(self, number):
        """ "standalone", "leader" or "follower"; None while the server does not serve."""
        try:
            where = self._address(number), self._ports[number][0]
            with socket.create_connection(where, 1.0) as asked:
                asked.sendall(b"srvr")
                with asked.makefile("rb") as answer:
                    said = re.search(rb"Mode: (\w+)", answer.read())
        except OSError:
            return None
        return said.group(1).decode() if said else None

    def leader(self):
        """The number of the server that leads, once one does."""
        return until(self._leading, START_WITHIN)[0]

    def has_leader(self):
        """Whether a server leads just now."""
        return bool(self._leading())

    def _leading(self):
        return [number for number in list(self._running) if self.mode(number) == "leader"]

    def signal(self, number, what):
        """Sends a signal to a server."""
        os.kill(self._running[number].pid, what)

    def kill(self, number):
        """kill -9, and waits until the server is gone."""
        self.signal(number, signal.SIGKILL)
        self._running.pop(number).wait()

    def stop(self):
        for number in list(self._running):
            self.kill(number)
        for held in itertools.chain(*self._held):
            held.close()

    def _log(self, number):
        log = self._folder / "server-{}".format(number) / "log"
        return "server {}:\n{}".format(number, log.read_text(errors="replace")[-3000:])
