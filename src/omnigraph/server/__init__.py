"""The HTTP server: authentication, admission and translation. It contains no rules; `Graph` enforces the policy."""
