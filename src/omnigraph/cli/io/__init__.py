"""Input and output of the command line: files, formats, colours, progress."""
