"""The tools that the benchmarks share.

    apart     a call in an interpreter of its own
    cluster   a TensorFlow cluster whose processes run a module
    deepfm    the model of the jobs whose AUC is compared
    kept      runs in a file, which are not carried out twice
    options   command lines
    picture   figures by matplotlib
    records   TFRecord files, and files read through by either side
    seeds     differences between modes, seed by seed
    side      a program under another Python that is asked for figures, line by line
    turns     sides that are measured one after the other, again and again
    usage     seconds, processor time and memory

Beside this folder: `tables` is how figures are shown, `core_speed` how fast this machine is; `run`
runs what `commands` lists, `results` keeps what it prints, and `pages` puts it into the pages.
"""
