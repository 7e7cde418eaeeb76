"""`semisync score`: a model and a data set in, a Parquet file of key, label and score out.

1. A model lists the inputs that it takes (`model.Input`) and scores batches: in TensorFlow
   (`in_tensorflow`, another process) or in torch (`in_torch`).
2. The rows are read in batches, in order, in bounded memory (`run`); each input's column becomes
   numbers or text as the model takes them, or is refused with the row (`features`).
3. The scores are checked and written in the order of the rows, to a temporary file until all are
   written (`output`).

Two models scored on one data set thus see the same rows in the same order, with the same policy for
missing values, and `semisync parity` joins their files.
"""
