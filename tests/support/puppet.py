"""A process that does what its spec says: the stand-in for a worker in tests of LocalCluster."""

import json
import sys
import time

from semisync.cluster.process import end_with_parent

spec = json.loads(sys.argv[1])
end_with_parent(spec["parent"])
if spec["do"][spec["job"]] == "fail":
    print("log line")
    raise ValueError("the disk is on fire")
if spec["do"][spec["job"]] == "sleep":
    print("asleep", flush=True)
    time.sleep(600)
