"""`semisync inspect` and `semisync convert`, and what importing them costs."""

import json
import sys

import pytest
import yaml

import migrate
from semisync import cli
from semisync.commands import convert
from tests.support.programs import ended, output_of


def run(capsys, *argv):
    code = cli.main([str(one) for one in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_inspect_lists_every_tensor_and_the_totals(tf2_checkpoints, capsys):
    code, out, _ = run(capsys, "inspect", tf2_checkpoints / "adagrad_ref", "--index")
    assert code == 0
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert lines["user"] == ["user", "float32", "31x8", "3", "variable", "992"]
    assert lines["dense/kernel/Adagrad"][-2:] == ["slot", "64"]
    assert "9 tensors" not in out.splitlines()[0]
    assert sum(line.count("data-0000") for line in out.splitlines()) == 3


def test_inspect_speaks_json(tf2_checkpoints, capsys):
    code, out, _ = run(capsys, "inspect", tf2_checkpoints / "slices", "--json", "--index")
    report = json.loads(out)
    assert (code, report["schema"]) == (0, "semisync.inspect/1")
    both = next(one for one in report["tensors"] if one["name"] == "both")
    assert both["slices"][-1] == {"start": [7, 64], "shape": [163, 6]}
    assert report["bytes"] == sum(one["bytes"] for one in report["tensors"])
    assert [shard["bytes"] for shard in report["shards"]] == [report["bytes"]]


def test_inspect_needs_the_index_alone(tf2_checkpoints, tmp_path, capsys):
    (tmp_path / "x.index").write_bytes((tf2_checkpoints / "sgd.index").read_bytes())
    code, out, _ = run(capsys, "inspect", tmp_path / "x", "--index")
    assert code == 0
    assert out.count(": missing") == 3
    code, _, err = run(capsys, "inspect", tmp_path / "x")
    assert code == 3
    assert "x.data-00000-of-00003 does not exist" in err and "--index" in err


def test_convert_prints_its_plan_and_what_it_wrote(tf2_checkpoints, tmp_path, capsys):
    code, out, _ = run(capsys, "convert", tf2_checkpoints / "adagrad_ref", tmp_path / "out")
    assert code == 0
    assert "table user: 31 x 8 float32, 3 partitions (mod), Adagrad" in out
    assert "wrote 11 tensors" in out
    assert "eps=0" in out
    assert (tmp_path / "out" / ".metadata").exists()


def test_convert_speaks_json(tf2_checkpoints, tmp_path, capsys):
    prefix, out, back = tf2_checkpoints / "adagrad_ref", tmp_path / "out", tmp_path / "back"
    code, said, _ = run(capsys, "convert", prefix, out, "--dry-run", "--json")
    found = json.loads(said)
    assert (code, found["schema"]) == (0, "semisync.convert-plan/1")
    assert [table["name"] for table in found["plan"]["tables"]] == ["item", "plain_city", "user"]
    assert found["forecast"]["written"] > 0 and not out.exists()

    code, said, err = run(capsys, "convert", prefix, out, "--json")
    found = json.loads(said)
    assert (code, found["schema"], found["out"]) == (0, "semisync.convert/1", str(out))
    assert (found["verified"], found["model"]) == (True, None)
    assert found["manifest"] == json.loads((out / "manifest.json").read_text())
    assert "table user: 31 x 8 float32" in err

    code, said, _ = run(
        capsys, "convert", "--to-tensorflow", out, back, "--original", prefix, "--json"
    )
    found = json.loads(said)
    assert (code, found["schema"]) == (0, "semisync.to-tensorflow/1")
    assert (found["prefix"], found["tensors"]) == (str(back), 11)


def test_ctrl_c_says_how_to_go_on(tf2_checkpoints, tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    prefix = tf2_checkpoints / "sgd"
    monkeypatch.setattr(convert.ByteProgress, "__call__", interrupt)
    code, _, err = run(capsys, "convert", prefix, tmp_path / "out")
    assert (code, err.strip()) == (130, "semisync convert: interrupted; go on with --resume")
    monkeypatch.undo()
    assert run(capsys, "convert", prefix, tmp_path / "out", "--resume")[0] == 0


def test_a_dry_run_prints_a_plan_that_plan_takes_back(tf2_checkpoints, tmp_path, capsys):
    prefix = tf2_checkpoints / "adagrad_ref"
    code, out, _ = run(capsys, "convert", prefix, tmp_path / "out", "--dry-run")
    assert code == 0
    assert not (tmp_path / "out").exists()
    edited = yaml.safe_load(out)
    edited["module"] = "sparse.ebc"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(edited))
    code, _, err = run(
        capsys, "convert", prefix, tmp_path / "out", "--plan", tmp_path / "plan.yaml"
    )
    assert code == 0, err
    fqns = {one.fqn for one in migrate.read_manifest(tmp_path / "out").tables}
    assert "sparse.ebc.embedding_bags.user.weight" in fqns


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--partition-strategy", "div"], "uses partition strategy 'mod'"),
        (["--tables", "nothing"], "names none of"),
        (["--meta", "/absent"], "/absent cannot be opened"),
        (["--plan", "/absent"], "/absent cannot be read"),
        (["--plan", "/absent", "--tables", "x"], "leave them out"),
    ],
)
def test_what_convert_cannot_do_ends_with_3_and_a_sentence(
    tf2_checkpoints, tmp_path, capsys, options, sentence
):
    prefix = tf2_checkpoints / "adagrad_ref"
    code, _, err = run(capsys, "convert", prefix, tmp_path / "out", *options)
    assert code == 3
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_an_unknown_checkpoint_ends_with_3_and_a_sentence(tmp_path, capsys):
    for command in (["inspect"], ["convert", "--dry-run", tmp_path / "out"]):
        code, _, err = run(capsys, command[0], tmp_path / "absent", *command[1:])
        assert code == 3
        assert "there is no checkpoint" in err


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "redirection, code, said",
    [
        ("> /dev/full", 3, "semisync inspect: the standard output: No space left on device\n"),
        (">&-", 0, ""),  # closed
    ],
)
def test_output_that_goes_nowhere_is_no_traceback(tf2_checkpoints, redirection, code, said):
    inspect = f"{sys.executable} -m semisync inspect {tf2_checkpoints / 'sgd'} --index"
    done = ended("bash", "-c", f"unset PYTHONUNBUFFERED; {inspect} {redirection}")
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize("work", ["inspect", "dry run"])
def test_neither_tensorflow_nor_torch_is_imported(tf2_checkpoints, work):
    prefix = str(tf2_checkpoints / "adagrad_ref")
    program = {
        "inspect": f"from semisync import cli; cli.main(['inspect', {prefix!r}])",
        "dry run": f"from semisync import cli; cli.main(['convert', {prefix!r}, 'x', '--dry-run'])",
    }[work]
    check = (
        "import sys; heavy = {'torch', 'tensorflow', 'tensorboard', 'torchrec'} & set(sys.modules)"
    )
    output_of(sys.executable, "-c", f"{program}\n{check}\nsys.exit(repr(heavy) if heavy else 0)")
