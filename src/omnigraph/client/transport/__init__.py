"""Loops that carry out calls over HTTP, one blocking and one asynchronous, with retries and cancellation."""
