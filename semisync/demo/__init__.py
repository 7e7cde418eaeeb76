"""`semisync demo`: a click log, a DeepFM trained on it, and the proof that nothing was lost.

The data half turns any input into a `click_log.ClickLog`: `generator` draws one whose true click
probabilities are known, `reading` reads a file. The workers see it as .npy files.
"""
