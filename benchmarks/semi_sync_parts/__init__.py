"""The parts of benchmarks/semi_sync.py.

Of both sides:      cases, signals
Of the cluster's processes (Python 3.7, TensorFlow):
                    process, training, model, modes
Of the orchestrator (no TensorFlow):
                    conductor, ps_watch, measures, summary, table, plot
"""
