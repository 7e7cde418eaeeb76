"""The worker: its ticket, its train op, its session hook, and the watchdog over the chief."""
