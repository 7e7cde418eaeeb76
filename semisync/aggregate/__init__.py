"""What else a batch changes, besides what the optimizer updates, under the fate of its batch."""
