"""The objects and rows of the manifest, states, snapshots, ids and ancestry."""
