"""The `rig` command. Starts fast: a command imports what it needs when it runs."""
