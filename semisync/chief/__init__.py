"""The chief: takes messages, forms global batches, applies them, issues tickets."""
