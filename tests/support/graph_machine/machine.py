"""The state machine."""

from __future__ import annotations

from random import Random
from time import time_ns

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from support.graph_machine.branches import Branches
from support.graph_machine.commits import Tally

STEPS = [
    *["mutate"] * 24,
    *["load"] * 16,
    *["change_schema"] * 8,
    *["mutate_wrongly"] * 6,
    *["switch_branch"] * 5,
    *["ingest", "change_schema_wrongly", "create_branch", "tend"] * 4,
    *["delete_branch", "reopen", "cleanup"] * 3,
    *["round_trip"] * 2,
]


def run(lives: int, steps: int) -> Tally:
    """Run `lives` histories of `steps` steps."""

    class Machine(GraphMachine):
        tally = Tally()

    chosen = settings(
        max_examples=lives,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=chosen)
    return Machine.tally


class GraphMachine(Branches):
    """Random steps on one graph."""

    @rule(what=st.sampled_from(STEPS), seed=st.integers(0, 2**32 - 1), size=st.integers(1, 8))
    def step(self, what: str, seed: int, size: int) -> None:
        self.tally.steps[what] += 1
        self.now = max(self.now + 1000, time_ns() // 1000)
        random = Random(seed)
        graph = random.choice(self.handles)
        if what in ("load", "ingest"):
            getattr(self, what)(random, graph, size)
        else:
            getattr(self, what)(random, graph)
        self.check(random)
