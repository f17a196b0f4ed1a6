"""`hermux selftest`: faults in a private fleet, and what became of the messages meanwhile. Uses `api` as a script does."""
