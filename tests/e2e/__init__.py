"""The installed `hermux` and the real Hermes, with the rehearsal model."""
