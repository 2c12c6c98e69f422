"""The route table: every route of the server as data, one module per family.

The router, the policy gate, admission, the OpenAPI document, the documentation pages and the tests are made from
`ROUTES`.
"""

from __future__ import annotations

from omnigraph.server.route import Route
from omnigraph.server.route_table import (
    admin_routes,
    branch_routes,
    change_routes,
    commit_routes,
    documentation_routes,
    editor_routes,
    explorer_routes,
    health_routes,
    load_routes,
    maintenance_routes,
    mcp_routes,
    mutate_routes,
    proposal_routes,
    purge_routes,
    query_routes,
    schema_routes,
    stored_query_routes,
    table_routes,
)

ROUTES: tuple[Route, ...] = (
    *query_routes.ROUTES,
    *editor_routes.ROUTES,
    *mutate_routes.ROUTES,
    *stored_query_routes.ROUTES,
    *mcp_routes.ROUTES,
    *load_routes.ROUTES,
    *schema_routes.ROUTES,
    *table_routes.ROUTES,
    *branch_routes.ROUTES,
    *proposal_routes.ROUTES,
    *commit_routes.ROUTES,
    *change_routes.ROUTES,
    *maintenance_routes.ROUTES,
    *purge_routes.ROUTES,
    *admin_routes.ROUTES,
    *health_routes.ROUTES,
    *documentation_routes.ROUTES,
    *explorer_routes.ROUTES,
)
