"""Golden files of `omnigraph codegen`; tests compare them, mypy checks them."""
