"""The traffic between workers and chief: tickets, batches, gradients, the state of the job."""
