"""Continuing a graph's training in torch: the same optimizers, schedules, slots and steps."""
