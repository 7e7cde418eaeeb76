"""Training on in torch as a graph trains: the same optimizers, schedules, slots and steps."""
