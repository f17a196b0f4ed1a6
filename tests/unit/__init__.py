"""Pure and quick: no tmux, no Hermes, no network but the loopback."""
