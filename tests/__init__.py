"""Tests in three rings: unit (pure), tmux (a real private server), e2e (the installed command, the real Hermes)."""
