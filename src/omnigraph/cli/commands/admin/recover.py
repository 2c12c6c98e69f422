"""`omnigraph recover`: finish or undo writes that were interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.cli.addresses import Address
from omnigraph.cli.invocation import Invocation, Json, takes_graph
from omnigraph.cli.io.output import plural, print_json

if TYPE_CHECKING:
    from omnigraph.versioning.write.recovery import Recovered


@takes_graph
def recover_command(run: Invocation, as_json: Json = False) -> None:
    """Complete or roll back interrupted writes; opening a graph for writing does the same."""
    address = run.address()
    outcomes = run.open(address).recover() if address.is_server else _recover_storage(run, address)
    if as_json:
        from omnigraph.wire.maintenance import RecoverDocument

        print_json(RecoverDocument.of({"uri": address.uri, "settled": [outcome.to_json() for outcome in outcomes]}))
        return
    print(f"recover {address.uri}: {plural(len(outcomes), 'unfinished write')}")
    for outcome in outcomes:
        who = f" by {outcome.actor}" if outcome.actor else ""
        print(f"  {outcome.intent} {outcome.outcome} branch={outcome.branch}{who}")
        if outcome.detail:
            print(f"    {outcome.detail}")


def _recover_storage(run: Invocation, address: Address) -> list[Recovered]:
    """Recover without opening the graph, which recovers already and would leave nothing to report."""
    access = run.access(address)
    if access is not None:
        access.check("maintain")
    from omnigraph.pipeline.orphan_jobs import sweep
    from omnigraph.versioning.write.recovery import recover
    from omnigraph.versioning.write.repository import Repository

    repository = Repository.open(address.uri, environ=run.environ)
    return [*recover(repository), *sweep(repository).problems]
