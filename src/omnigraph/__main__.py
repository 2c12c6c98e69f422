"""`python -m omnigraph` is the `omnigraph` program."""

from omnigraph.cli.entry import main

main()
