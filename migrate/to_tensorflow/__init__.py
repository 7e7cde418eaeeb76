"""The way back: a TensorFlow checkpoint of torch's state.

    migrate.write_checkpoint("converted", "back.ckpt", original="model.ckpt-40000")
    migrate.write_checkpoint(training, "model.ckpt-40100", original="model.ckpt-40000")

1. The original's index is the template: the name of each tensor, its type, its shape,
   how it is cut and into how many data files. The result differs from it in values alone, so
   that any code that restores the original restores it (`template`, `write`).
2. A side of torch lists its tensors (`held`): a directory that `semisync convert` wrote
   (`in_directory`), a module with its optimizer (`in_module`), a checkpoint that training saved
   after the conversion (`by_manifest`) or without one (`by_graph`). Its rows are put where their
   ids stand in TensorFlow, kernels are transposed back, slots go to their names.
3. Tensors that torch lacks are copied from the original, byte by byte, and reported. State that
   torch keeps in a form from which TensorFlow's cannot be made is refused by name.
4. Every value passes through once, in bounded memory; the crc32c of the input is checked and
   that of the output computed on the way (`data_files`).
5. The files are written beside their place and moved there when whole, the index last (`placing`).
"""
