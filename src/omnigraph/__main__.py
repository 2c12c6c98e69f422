"""`python -m omnigraph` is the `omnigraph` program."""

from omnigraph.cli.main import main

main()
