"""`semisync migrate`: a checkpoint, its graph and its data in; a model in torch and one report out.

Each part is the library function behind another command, and its result is a file in OUT/parts:

    convert     OUT/converted: the values, and model.py          semisync convert --model
    values      both sides read again, bit for bit               semisync verify
    forward     the outputs of 10,000 rows, rare ones among them semisync verify --forward
    training    the same steps on the same batches               semisync verify --steps
    tensorflow  OUT/tensorflow.parquet, the scores of all rows   semisync score --checkpoint
    torch       OUT/torch.parquet, likewise                      semisync score --converted
    rows        those scores, row by row
    auc         is the difference in AUC within the margin?      semisync parity

1. A part runs again only where its inputs have changed: the checkpoint, the graph, the
   data, model.py, the options that it reads, or the version of semisync.
2. A part that cannot run (no TensorFlow in the interpreter, a graph without a training op) says
   why, and is tried again the next time.
3. The verdict is MIGRATED where every part passed, NOT_MIGRATED where one failed, and INCONCLUSIVE
   where none failed and one could not run or could not decide.
"""
