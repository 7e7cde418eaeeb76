"""Changes of a batch beyond the optimizer's, such as moving statistics, under the batch's fate."""
