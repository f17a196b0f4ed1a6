"""The long versions of what the tests run short; `scripts/prove` runs them."""
