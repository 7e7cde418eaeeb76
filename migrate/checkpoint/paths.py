"""The checkpoint of a path: a prefix, a directory of checkpoints, a SavedModel, V1's tables.

A directory names the checkpoint that its file `checkpoint` names:

    model_checkpoint_path: "model.ckpt-40000"

1. The Saver writes this CheckpointState as text. A file of the last name in it, in the directory
   itself, comes first: a copied directory names its own checkpoint. Else a relative path begins at
   the directory, as in TensorFlow, and a whole one is followed on this machine, or on the server of
   the URL that the user gave: whoever wrote the file makes nobody ask another one. The tables of a
   sharded V1 checkpoint are a pattern there, "model.ckpt-40000-?????-of-00002".
2. Nothing else decides. If the file is missing, or names a checkpoint that does not exist, the
   message lists the checkpoints in the directory.

Source: tensorflow/python/training/checkpoint_state.proto
"""

from __future__ import annotations

import os
import re
from typing import Iterator, List, Optional

from semisync.common.errors import BadInput
from semisync.common.sentences import some_of
from semisync.encoding.sstable import ends_like_a_table
from semisync.storage.files import open_file, open_regular, size_of
from semisync.storage.remote import is_remote
from semisync.storage.within import reachable

STATE = "checkpoint"

_LATEST = re.compile(rb'^\s*model_checkpoint_path:\s*"((?:[^"\\\n]|\\.)*)"', re.MULTILINE)
_SUFFIX = re.compile(r"(\.index|\.meta|\.data-\d{5}-of-\d{5})$")
_V1_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_V1_PATTERN = re.compile(r"-\?{5}-of-\d{5}$")
_V1_FIRST = re.compile(r"-00000-of-\d{5}$")
_MAX_STATE = 16 << 20  # bytes; one path per checkpoint that is kept


def checkpoint_prefix(path: str) -> str:
    """`path` itself, or the prefix of the latest checkpoint in a directory of checkpoints.

    Raises:
        BadInput: nothing in the directory says which of its checkpoints is the latest.
    """
    path = os.fspath(path)
    if not is_directory_of_checkpoints(path):
        return path
    state = join(path, STATE)
    if size_of(state) is None:
        raise BadInput(f"{path} has no file `{STATE}` that names one; {_choice(path)}")
    named = _latest(state)
    prefixes = list(_places(path, named))
    for prefix in prefixes:
        if _is_checkpoint(prefix):
            return prefix
    where = "there" if len(prefixes) > 1 else f"in {path}, and no other server is asked for it"
    raise BadInput(f"{state} names {named}, which is not {where}; {_choice(path)}")


def _places(directory: str, named: str) -> Iterator[str]:
    """The possible paths of the checkpoint that the file in `directory` names, likeliest first."""
    if is_remote(directory) and "::" in named:
        return  # fsspec would go on from one server to another
    yield join(directory, re.split(r"[/\\]", named)[-1])
    if not os.path.isabs(named) and not is_remote(named):
        yield join(directory, named)
    elif reachable(named, directory):
        yield named


def is_directory_of_checkpoints(path: str) -> bool:
    """Whether `path` is a directory with checkpoints, or with their file `checkpoint`."""
    if size_of(path + ".index") is not None:
        return False
    if is_remote(path):
        return size_of(join(path, STATE)) is not None
    return os.path.isdir(path) and (size_of(join(path, STATE)) is not None or bool(_prefixes(path)))


def saved_model_prefix(directory: str) -> Optional[str]:
    """Prefix of the variables of the SavedModel in `directory`; None if it holds none."""
    prefix = os.path.join(directory, "variables", "variables")
    return prefix if size_of(prefix + ".index") is not None else None


def saved_model_file(prefix: str) -> Optional[str]:
    """Path of the `saved_model.pb` whose variables have `prefix`; None if there is none."""
    folder, slash, name = prefix.rpartition("/variables/")
    path = f"{folder}/saved_model.pb"
    return path if slash and name == "variables" and size_of(path) is not None else None


def v1_tables(prefix: str) -> List[str]:
    """The files of a V1 checkpoint: `prefix` itself or all PREFIX-00000-of-0000N.

    Returns:
        Their paths; none for a URL.

    Raises:
        BadInput: one of several is missing.
    """
    if is_remote(prefix) or _SUFFIX.search(prefix):
        return []
    if os.path.isfile(prefix):
        shard = _V1_SHARD.search(prefix)
        if shard and ends_like_a_table(prefix):
            return v1_tables(prefix[: shard.start()])
        return [prefix] if ends_like_a_table(prefix) else []
    folder, base = os.path.split(prefix)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []  # the caller's own message says that nothing is there
    shards = [name for name in names if _is_shard(name, base)]
    shards = sorted(name for name in shards if ends_like_a_table(os.path.join(folder, name)))
    count = int(shards[0][-5:]) if shards else 0
    # "" stands for what is missing at the end.
    for number, name in enumerate(shards + [""]):
        expected = f"{base}-{number:05d}-of-{count:05d}"
        if number < count and name != expected:
            raise BadInput(f"{prefix} lacks its part {expected}; the V1 checkpoint is incomplete")
    return [os.path.join(folder, name) for name in shards]


def refuse_absent(prefix: str) -> None:
    """Raises BadInput that names what stands at `prefix` instead of a checkpoint."""
    index = prefix + ".index"
    if not is_remote(prefix) and os.path.exists(index):
        open_regular(index).close()  # which says that it is a directory or a pipe
    if os.path.isdir(prefix):
        raise BadInput(f"{prefix} is a directory without a checkpoint; give a checkpoint's prefix")
    if os.path.isfile(prefix):
        with open_regular(prefix) as file:
            refuse_keras_file(prefix, file.read(4))
        if prefix.endswith(".pb"):
            raise BadInput(
                f"{prefix} is not a checkpoint; a frozen graph, which has no variables, goes to "
                "`convert --model`, `verify`, `score`, `migrate` and `inspect --graph`"
            )
    bare = _SUFFIX.sub("", prefix)
    if bare != prefix:
        raise BadInput(f"{prefix} is one file of a checkpoint; give its prefix, {bare}")
    raise BadInput(f"there is no checkpoint {prefix}: {index} does not exist")


def refuse_keras_file(path: str, start: bytes) -> None:
    """Raises BadInput if a file that begins with `start` is a zip (.keras) or HDF5, of Keras."""
    if start.startswith((b"PK\x03\x04", b"\x89HDF")):
        raise BadInput(
            f"{path} is a file of Keras's own (.keras, .h5), which is not read; give a SavedModel, "
            "which model.export(DIR) writes, or a checkpoint of tf.train.Checkpoint"
        )


def join(directory: str, name: str) -> str:
    """The path of a file in a directory, or of an object below a URL."""
    return directory.rstrip("/") + "/" + name


def _latest(state: str) -> str:
    with open_file(state) as file:
        if file.size > _MAX_STATE:
            raise BadInput(f"{state} has {file.size} bytes, expected the names of checkpoints")
        latest = _LATEST.search(file.read(0, file.size, state))
    if latest is None:
        raise BadInput(
            f"{state} has no line 'model_checkpoint_path: \"...\"'; "
            f"{_choice(os.path.dirname(state))}"
        )
    try:  # the text has octal escapes of UTF-8
        named = latest[1].decode("unicode_escape").encode("latin-1").decode("utf-8")
    except UnicodeError as error:
        raise BadInput(f"{state}: {latest[1]!r} is not a path in UTF-8") from error
    return _V1_PATTERN.sub("", named)


def _is_checkpoint(prefix: str) -> bool:
    return size_of(prefix + ".index") is not None or bool(v1_tables(prefix))


def _is_shard(name: str, base: str) -> bool:
    return name.startswith(base) and bool(_V1_SHARD.fullmatch(name[len(base) :]))


def _prefixes(directory: str) -> List[str]:
    """Names of the checkpoints in a directory: of format V2, and of V1 in several tables."""
    names = sorted(os.listdir(directory))
    bundles = [name[: -len(".index")] for name in names if name.endswith(".index")]
    first = [_V1_FIRST.sub("", name) for name in names if _V1_FIRST.search(name)]
    return bundles + [name for name in first if v1_tables(join(directory, name))]


def _choice(directory: str) -> str:
    prefixes = [] if is_remote(directory) else _prefixes(directory)
    if not prefixes:
        return "give the prefix of one checkpoint"
    listed = some_of((join(directory, prefix) for prefix in prefixes), most=10)
    return f"give one of these: {listed}"
