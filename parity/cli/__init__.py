"""`semisync parity`: its arguments, its steps and how it ends."""
