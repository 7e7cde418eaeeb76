"""How fast a job's launchers agree: elections, 1,000 members, forwarded connections.

    python -m benchmarks.coordination [--elections N] [--members N] [--processes N]

Elections: three ZooKeeper servers and three candidates, each a process, sessions of 4 s. The leader
is killed (kill -9) or stopped (SIGSTOP), or ZooKeeper loses its own leader. Seconds are from the
fault to the first instant at which another leads; in the last case the longest time without a
leader.

Members: one ZooKeeper server; every member has a connection and a session of its own, in a few
processes. Joining takes from the first connection until the leader sees all; then the leader
publishes a generation, and each member reads it.

Forwarding: what `semisync.cluster.launch.forward` passes on in one connection, against a connection
without it: bytes per second, and the time of a request of 100 bytes and its answer.
"""

import contextlib
import pathlib
import signal
import socket
import statistics
import tempfile
import threading
import time

from benchmarks.harness.apart import beside
from benchmarks.harness.options import options
from benchmarks.tables import head, row
from semisync.cluster.launch.forward import Forwards
from semisync.cluster.zookeeper.client import Unavailable
from semisync.cluster.zookeeper.connection import Connection
from semisync.cluster.zookeeper.generation import Generation, publish, read
from semisync.cluster.zookeeper.leader import Deposed, Election, boot_clock
from semisync.cluster.zookeeper.membership import Membership, members
from tests.cluster.candidates import Candidates
from tests.support.zookeeper import ZooKeeper

ROOT = "/job"
SESSION = 4.0  # seconds, of the candidates
MEMBER_SESSION = 30.0
DEADLINE = 600.0  # seconds until all members have joined
KILL, STOP, LOSS = "kill", "stop", "loss"
FAULTS = {
    KILL: "the leader is killed (kill -9): until another leads",
    STOP: "the leader is stopped (SIGSTOP): until another leads",
    LOSS: "ZooKeeper loses the leader of its three servers: longest time without a leader",
}
MEMBERS = (
    "{:,} members, each with a session of its own: until the leader sees all",
    "until each has read the generation with all names",
)


def elections(folder, trials):
    """Seconds until somebody leads, {fault: list}."""
    servers = ZooKeeper(folder, servers=3)
    candidates = Candidates(servers.hosts + "/elections", folder, SESSION)
    for _ in range(3):
        candidates.start()
    gaps = {}
    try:
        for trial in range(trials):
            for fault in FAULTS:
                epoch, name = candidates.leader()
                time.sleep(0.1 * (trial % 10))  # anywhere within a lease
                begun = boot_clock()
                if fault == KILL:
                    candidates.signal(name, signal.SIGKILL)
                elif fault == STOP:
                    candidates.signal(name, signal.SIGSTOP)
                else:
                    number = servers.leader()
                    servers.kill(number)
                    candidates.led_at(begun + 5.0)
                    gaps.setdefault(fault, []).append(candidates.longest_gap(begun))
                    servers.start(number)
                    servers.wait()
                    continue
                gaps.setdefault(fault, []).append(candidates.led_at(begun, epoch) - begun)
                if fault == KILL:
                    candidates.start()
                else:
                    candidates.signal(name, signal.SIGCONT)
        candidates.check()
    finally:
        candidates.stop()
        servers.stop()
    return gaps


def member_process(pipe, hosts, first, count):
    """Runs members in one process: once asked, they join and read the generation; then it sends the
    time at which all had it."""
    pipe.send("ready")
    pipe.recv()
    clients = {}
    for number in range(first, first + count):
        name = "worker-{}".format(number)
        clients[name] = Connection(hosts, MEMBER_SESSION)
        Membership(clients[name], ROOT, name, {"id": name}).register()
    generations = {}

    def read_generation(name):
        told = threading.Event()
        while name not in generations:
            with contextlib.suppress(Unavailable):  # too many ask at once: again
                generation = read(clients[name], ROOT, told.set)
                if generation is None:
                    told.wait(30.0)
                else:
                    generations[name] = generation

    threads = [threading.Thread(target=read_generation, args=(name,)) for name in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A clock that all processes of the machine share.
    pipe.send(boot_clock())


def as_leader(act):
    """Does what only the leader may; on a busy machine it may have to wait until it leads again."""
    while True:
        try:
            return act()
        except Deposed:
            time.sleep(0.05)


def many_members(folder, total, processes):
    """Seconds until all have joined, and have read a generation."""
    server = ZooKeeper(folder)
    hosts = server.hosts + "/members"
    client = Connection(hosts, MEMBER_SESSION)
    election = Election(client, ROOT, "leader", "leader")
    election.start()
    share = total // processes
    with contextlib.ExitStack() as ends:
        ends.callback(server.stop)
        ends.callback(client.close)
        ends.callback(election.resign)
        pipes = [
            ends.enter_context(beside(member_process, hosts, share * number, share))
            for number in range(processes)
        ]
        for pipe in pipes:
            pipe.recv()
        begun = boot_clock()
        for pipe in pipes:
            pipe.send("go")
        told = threading.Event()
        while len(members(client, ROOT, told.set)) < share * processes:
            assert boot_clock() - begun < DEADLINE, "members are missing"
            told.wait(1.0)
            told.clear()
            time.sleep(0.2)  # the leader of a job looks at several arrivals at once, too
        joined = boot_clock() - begun
        here = {name: about["id"] for name, about in members(client, ROOT).items()}
        begun = boot_clock()
        as_leader(lambda: publish(election, ROOT, Generation(1, here, {})))
        return joined, max(pipe.recv() for pipe in pipes) - begun


def _serve(listener):
    with contextlib.suppress(OSError):
        while True:
            taken, _ = listener.accept()
            threading.Thread(target=_answer, args=(taken,), daemon=True).start()


def _answer(taken):
    buffer = bytearray(1 << 20)
    with taken:
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            size = taken.recv_into(buffer)
            if not size:
                return
            if size == 100:
                taken.sendall(buffer[:100])


def forwarding(direct_address):
    """{way: (GB/s, microseconds per request)}."""
    forwards = Forwards(lambda name: direct_address)
    found = {}
    ways = {"direct": direct_address, "through the launcher": forwards.address("worker-0")}
    for name, address in ways.items():
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            times = []
            for _ in range(2000):
                begun = time.perf_counter()
                sender.sendall(b"x" * 100)
                sender.recv(100, socket.MSG_WAITALL)
                times.append(time.perf_counter() - begun)
            block, begun = bytes(1 << 20), time.perf_counter()
            for _ in range(2000):
                sender.sendall(block)
            seconds = time.perf_counter() - begun
        found[name] = (2000 * len(block) / seconds / 1e9, 1e6 * statistics.median(times))
    forwards.close()
    return found


def answering_process(pipe):
    """A server for `forwarding`, which sends its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(5)
    pipe.send("127.0.0.1:{}".format(listener.getsockname()[1]))
    _serve(listener)


def report(args):
    """Prints two Markdown tables."""
    print(head("what | seconds"))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for part in ("elections", "members"):
            (folder / part).mkdir()
        for fault, gaps in elections(folder / "elections", args.elections).items():
            took = "median {:.2f}, most {:.2f}".format(statistics.median(gaps), max(gaps))
            print(row("{}, {} times".format(FAULTS[fault], len(gaps)), took), flush=True)
        whole = many_members(folder / "members", args.members, args.processes)
    for text, seconds in zip(MEMBERS, whole):
        print(row(text.format(args.members), "{:.1f}".format(seconds)), flush=True)
    print("\n" + head(["", "GB/s", "time of a request of 100 bytes and its answer, us"]))
    with beside(answering_process) as pipe:
        for name, (rate, delay) in forwarding(pipe.recv()).items():
            print(row(name, "{:.1f}".format(rate), "{:.0f}".format(delay)))


def main():
    """The command line."""
    report(options(__doc__, elections=20, members=1000, processes=4))


if __name__ == "__main__":
    main()
