"""Knowledge shared by all parts of a job: its places, and its launchers' records."""
