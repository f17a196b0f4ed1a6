"""The supervisor: observe → decide → record → apply, one process a fleet."""
