"""What all know of a job: its places, and what its launchers write down for each other."""
