"""Does the converted model behave as TensorFlow's? The same rows through both, node by node.

    from migrate.behaviour.setting import Setting
    from migrate.behaviour.forward import compare_forward
    from migrate.behaviour.training import compare_training

    setting = Setting(named=[("user_id", "user", False)], feeds={"keep_prob": 1.0},
                      python="python3.7")
    compare_forward(prefix, converted, data, setting, outputs=None, rows=10_000) -> ForwardReport
    compare_training(prefix, converted, data, setting, steps=100) -> TrainingReport

    from migrate.behaviour.every_row import ScoreFiles, compare_scores

    compare_scores(prefix, converted, data, ScoreFiles(...), setting) -> ScoresReport

1. `prefix` is a checkpoint with its MetaGraph, `converted` its conversion by
   `semisync convert --model`, `data` a data set as `semisync score` reads it, with the features,
   and for training the labels, under the names of the graph's inputs (`setting.named` names
   others).
2. TensorFlow runs in the interpreter `setting.python`, a process of its own
   (`migrate.scoring.tf_child`); torch runs here. Both are given the same rows in the same batches.
3. `compare_forward` compares every output of some rows and, where one differs, finds the first node
   of the graph that does. `compare_scores` compares the scores of all rows, which both sides wrote
   to files. `compare_training` takes the training op's own steps on both sides and compares the
   loss before, and every variable and slot after each step.
4. Dropout is off on both sides: TensorFlow is fed the rates that drop nothing.

The reports have `.equal` and `.to_json()`; `migrate.behaviour.text` formats them as text. If a
comparison is impossible, BadInput or UsageError is raised: no TensorFlow in the interpreter, a data
set without a column, a graph without a training op.
"""
