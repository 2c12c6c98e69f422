"""The deployment that a process serves: settings, graphs, policies, and their reload."""
