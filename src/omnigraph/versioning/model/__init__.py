"""The rows of the manifest, states, snapshots, ids and ancestry."""
