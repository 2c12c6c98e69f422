"""The OpenAPI document and the reference of routes, made from the route table."""
