"""Files and configurations of a job, on every machine of it.

    manifest        the files, by path, size and SHA-256; the copy of them that is handed out
    server          serves them over HTTP to holders of the job's token
    download        fetches them, checked and resumed
    configurations  versions of the job's configuration, in ZooKeeper

    connections, refusals, loop   limits, a log and a thread for servers, that of `status` too

`semisync launch --ship` and `--config` use them (`semisync.cluster.launch.workplace`).
"""
