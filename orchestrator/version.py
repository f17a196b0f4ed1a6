"""The version of hermux. The supervisor records it; another version's supervisor is refused."""

__version__ = "0.1.0"
