"""One process of a job: runs its script as `python SCRIPT ARGUMENTS` does.

The spec holds

    script, arguments    of the command line
    environment          more environment variables
    directory            where it runs
"""

import json
import os
import runpy
import sys

from semisync.cluster.process import end_with_parent
from tests.jobs.haste import make_haste


def main():
    spec = json.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    make_haste()
    os.environ.update(spec["environment"])
    os.chdir(spec["directory"])
    sys.argv = [spec["script"]] + spec["arguments"]
    try:
        runpy.run_path(spec["script"], run_name="__main__")
    except SystemExit as ended:
        if ended.code:
            raise


if __name__ == "__main__":
    main()
