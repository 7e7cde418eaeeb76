"""The parts of benchmarks/semi_sync.py.

Both sides:         cases, signals
The cluster's processes (Python 3.7, TensorFlow):
                    process, training, model
The orchestrator (no TensorFlow):
                    conductor, usage, measures, table, plot
"""
