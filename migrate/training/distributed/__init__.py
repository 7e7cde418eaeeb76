"""One training in several processes: who they are, where each computes, and what each has."""
