"""Files, local or remote, and threads that read and write them."""
