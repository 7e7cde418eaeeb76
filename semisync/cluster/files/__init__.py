"""Files and configurations of a job, on every machine of it.

    manifest        which files, by path, size and SHA-256; the copy of them that is handed out
    server          hands them out over HTTP to who has the job's token
    download        fetches them, checked and resumed
    configurations  versions of the job's configuration, in ZooKeeper

    connections, refusals, loop   limits, a log and a thread for servers; `status` has them too

`semisync launch --ship` and `--config` use them (`semisync.cluster.launch.workplace`).
"""
