"""What runs on one machine of benchmarks/files.py: a server, or a client, of one of two kinds.

    machine.py serve FOLDER HOST             plain: aiohttp's own file server
    machine.py copy URL FILE                 plain: one GET, written to a file
    machine.py publish FOLDER HOST           semisync's root
    machine.py download URL DIGEST INTO HOST     semisync's follower, which serves on

Each prints a JSON object per line. A client says that it is ready, begins with the first line on
stdin, says when it is done, and ends with stdin. The last line has its processor seconds.
"""

import asyncio
import json
import os
import resource
import sys
import threading

import aiohttp
from aiohttp import web

from semisync.cluster import files


def say(**what):
    print(json.dumps(what), flush=True)


def serve(folder, host):
    async def main():
        app = web.Application()
        app.router.add_static("/", folder)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, host, 0).start()
        say(url="http://{}:{}".format(*runner.addresses[0][:2]))
        await asyncio.get_event_loop().run_in_executor(None, sys.stdin.read)

    asyncio.run(main())


def copy(url, place):
    async def main():
        async with aiohttp.ClientSession() as session:
            say(ready=True)
            sys.stdin.readline()
            async with session.get(url, timeout=aiohttp.ClientTimeout(total=None)) as answer:
                with open(place, "wb") as file:
                    async for part in answer.content.iter_any():
                        file.write(part)
                    os.fsync(file.fileno())
            say(done=True)

    asyncio.run(main())


def publish(folder, host):
    with files.Node(files.read_key(), host=host) as node:
        digest = node.publish(folder, job="benchmark")
        say(url=node.url, digest=digest)
        sys.stdin.read()
        say(sent=node.sent(digest), refused=node.refusals)


def download(url, digest, into, host):
    with files.Node(files.read_key(), host=host) as node:
        say(ready=True)
        sys.stdin.readline()
        node.download(digest, [url], into=into, deadline=600)
        say(done=True)
        sys.stdin.read()
        say(sent=node.sent(digest), refused=node.refusals)


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    {"serve": serve, "copy": copy, "publish": publish, "download": download}[role](*arguments)
    used = resource.getrusage(resource.RUSAGE_SELF)
    say(
        cpu=used.ru_utime + used.ru_stime,
        memory=used.ru_maxrss / 1e3,
        threads=threading.active_count(),
    )
