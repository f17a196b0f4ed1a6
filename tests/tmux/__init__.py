"""On a real tmux server of its own."""
