"""Kubeflow's training operator on this machine: the pods of a manifest as real processes.

What the operator (1.9, `pkg/controller.v1`) and the kubelet do there is done here:

    variables   TF_CONFIG, with every role in the cluster, or RANK, WORLD_SIZE, MASTER_* and PET_*;
                only in the container of the name that the operator looks for
    start       all pods, in no order
    restart     what ended, where the restartPolicy says so, with the same variables; the job fails
                after more than backoffLimit of them
    end         when the chief or master has ended well, or the workers where there is none; what
                still runs is ended then, unless the cleanPodPolicy is None, as it is by default

Other than there, a pod's address is a port of this machine, its volumes are folders, and what ended
starts again at once.
"""

import json
import os
import subprocess
import time
from typing import NamedTuple

import psutil

from semisync.cluster.launch.port import HeldPort
from tests.support.require import environment

GRACE = 30.0  # Kubernetes' seconds between SIGTERM and SIGKILL
RESTARTS = {
    "Always": lambda code: True,
    "OnFailure": lambda code: code != 0,
    "ExitCode": lambda code: code >= 128,
    "Never": lambda code: False,
}


class Ended(NamedTuple):
    """A pod whose process ended: its role, its index, and the exit code as Kubernetes has it."""

    role: str
    index: int
    code: int


class Job:
    """A manifest's pods, as processes; use it as a context manager.

    Args:
        manifest: of a TFJob or a PyTorchJob, as YAML reads it.
        folder: a pathlib directory, in which the processes run and their volumes and logs are.
        programs: the folder in which the interpreter is, first in PATH.
        more: variables that the image has.

    Attributes:
        running: {(role, index): Popen}.
        ends: a list of `Ended`.
        state: None, "Succeeded" or "Failed".
    """

    def __init__(self, manifest, folder, programs, **more):
        spec = manifest["spec"]
        kind = {"TFJob": _TFJob, "PyTorchJob": _PyTorchJob}[manifest["kind"]]
        self._folder, self._policy = folder, spec.get("runPolicy", {})
        self._roles = {role.lower(): given for role, given in spec[kind.roles].items()}
        keys = [(r, i) for r, role in self._roles.items() for i in range(role.get("replicas", 1))]
        self._ports = {key: HeldPort() for key in keys}
        self._kind = kind(spec, {key: port.number for key, port in self._ports.items()})
        self._image = environment(
            PATH=os.pathsep.join([str(programs), os.environ["PATH"]]),
            TF_CPP_MIN_LOG_LEVEL="2",
            CUDA_VISIBLE_DEVICES="-1",
            **more,
        )
        self.running, self.ends, self.state, self._restarts = {}, [], None, 0

    def __enter__(self):
        for key in self._ports:
            self._start(*key)
        return self

    def __exit__(self, *_):
        for key in list(self.running):
            self.kill(*key)
        for port in self._ports.values():
            port.close()

    def _start(self, role, index):
        words, variables = self._container(role)
        with open(str(self.log(role, index)), "ab") as log:
            self.running[role, index] = subprocess.Popen(
                words,
                cwd=str(self._folder),
                env={**self._image, **variables, **self._kind.variables(role, index)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _container(self, role):
        """(the words of the command, the variables) of a role's container."""
        pod = self._roles[role]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["name"] == self._kind.container, "another one gets no variables"
        words = [*container["command"], *container.get("args", ())]
        volumes = {volume["name"] for volume in pod.get("volumes", ())}
        for mount in container.get("volumeMounts", ()):
            assert mount["name"] in volumes
            here = self._folder / mount["name"]
            here.mkdir(exist_ok=True)
            words = [word.replace(mount["mountPath"], str(here)) for word in words]
        return words, {each["name"]: each["value"] for each in container.get("env", ())}

    def log(self, role, index):
        """The path of what a pod's processes print."""
        return self._folder / "{}-{}.log".format(role, index)

    def story(self):
        """How all ended, and their last words."""
        logs = [(key, self.log(*key).read_text(errors="replace")) for key in self._ports]
        last = ["--- {} {}\n{}".format(*key, log[-3000:]) for key, log in logs]
        return "\n".join([str(self.state), *map(str, self.ends), *last])

    def kill(self, role, index):
        """kill -9 of all processes of a pod."""
        process = self.running[role, index]
        if process.poll() is None:
            first = psutil.Process(process.pid)
            for each in [*first.children(recursive=True), first]:
                each.kill()
        process.wait()

    def tick(self):
        """Looks who has ended, and does what is to be done; call it often."""
        for key, process in list(self.running.items()):
            code = process.poll()
            if code is not None and self.state is None:
                del self.running[key]
                self._book(Ended(*key, code if code >= 0 else 128 - code))

    def _book(self, end):
        self.ends.append(end)
        if RESTARTS[self._roles[end.role].get("restartPolicy", "Never")](end.code):
            self._restarts += 1
            if self._restarts > self._policy.get("backoffLimit", self._restarts):
                self._finish("Failed")
            else:
                self._start(end.role, end.index)
        elif end.code != 0:
            self._finish("Failed")
        elif self._kind.has_succeeded({each[:2] for each in self.ends if each.code == 0}):
            self._finish("Succeeded")

    def _finish(self, state):
        self.state = state
        if self._policy.get("cleanPodPolicy", "None") == "None":
            return
        for process in self.running.values():
            process.terminate()
        for key, process in list(self.running.items()):
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.kill(*key)
            del self.running[key]

    def until(self, condition, deadline=300.0):
        """Waits until `condition()`; AssertionError where that takes too long, or the job ends."""
        late = time.monotonic() + deadline
        while not condition():
            assert self.state is None and time.monotonic() < late, self.story()
            self.tick()
            time.sleep(0.01)

    def wait(self, deadline=300.0):
        """The state in which the job ends."""
        self.until(lambda: self.state is not None, deadline)
        return self.state


class _Kind:
    """What differs between the operator's kinds of job.

    Args:
        spec: of the manifest.
        ports: {(role, index): number}.
    """

    def __init__(self, spec, ports):
        self._spec, self._ports = spec, ports
        roles = {role for role, _ in ports}
        self._first = next((role for role in ("chief", "master") if role in roles), None)


class _TFJob(_Kind):
    roles, container = "tfReplicaSpecs", "tensorflow"

    def variables(self, role, index):
        cluster = {}
        for (each, _), port in self._ports.items():
            cluster.setdefault(each, []).append("127.0.0.1:{}".format(port))
        task = {"type": role, "index": index}
        return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}

    def has_succeeded(self, ended):
        return (self._first or "worker", 0) in ended


class _PyTorchJob(_Kind):
    roles, container = "pytorchReplicaSpecs", "pytorch"

    def variables(self, role, index):
        found = {"PYTHONUNBUFFERED": "1", "PET_NNODES": str(len(self._ports))}
        elastic = self._spec.get("elasticPolicy")
        processes = self._spec.get("nprocPerNode", "auto")
        found["PET_NPROC_PER_NODE"] = processes
        if self._first:
            rank = str(index + (role == "worker"))
            address, port = "127.0.0.1", str(self._ports["master", 0])
            found.update(MASTER_ADDR=address, PET_MASTER_ADDR=address)
            found.update(MASTER_PORT=port, PET_MASTER_PORT=port, RANK=rank, PET_NODE_RANK=rank)
            each = int(processes) if processes.isdigit() else 1
            found["WORLD_SIZE"] = str(len(self._ports) * each)
        if elastic is not None:
            found["PET_RDZV_ENDPOINT"] = "127.0.0.1:{}".format(self._ports["worker", 0])
            found["PET_RDZV_BACKEND"] = elastic.get("rdzvBackend", "c10d")
            found["PET_NNODES"] = "{minReplicas}:{maxReplicas}".format(**elastic)
            found["PET_MAX_RESTARTS"] = str(elastic["maxRestarts"])
        return found

    def has_succeeded(self, ended):
        if self._first:
            return ("master", 0) in ended
        return "elasticPolicy" in self._spec or ended == set(self._ports)
