"""A memory for agents: facts with sources and time, recall, revision on a branch, review, and explanation.

`python examples/agent_memory/memory.py` runs the whole story in a temporary folder, without a network: embeddings are
computed locally. `Memory` is the part to copy.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import omnigraph as og

if TYPE_CHECKING:
    from omnigraph.graph_proposals import Proposal

HERE = Path(__file__).parent
LOCAL = {"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_MODEL": "local-hashed-ngrams-v1"}


class Memory:
    """The memory of one agent. `branch` is where it writes; the shared memory is `main`."""

    def __init__(self, graph: og.Graph, branch: str = "main") -> None:
        self.graph = graph.on(branch)

    @classmethod
    def create(cls, folder: Path, actor: str) -> Memory:
        """Create an empty memory."""
        graph = og.init(folder, HERE / "schema.pg", actor=actor, environ={**os.environ, **LOCAL})
        graph.store_query(HERE / "queries.gq", message="questions of agents")
        return cls(graph)

    def remember(
        self,
        slug: str,
        text: str,
        *,
        about: Sequence[tuple[str, str]],
        source: tuple[str, str],
        at: str,
        confidence: float,
        instead_of: str | None = None,
    ) -> str | None:
        """Store a fact, its entities and its source as one commit; return the commit.

        A repeated call changes nothing. `instead_of` names the fact that the new one supersedes.
        """
        uri, title = source
        records: list[dict[str, Any]] = [
            {"type": "Source", "data": {"uri": uri, "title": title, "seen": at}},
            {
                "type": "Fact",
                "data": {"slug": slug, "text": text, "confidence": confidence, "learned": at, "retracted": False},
            },
            {"edge": "CameFrom", "from": slug, "to": uri},
        ]
        for name, kind in about:
            records.append({"type": "Entity", "data": {"name": name, "kind": kind}})
            records.append({"edge": "About", "from": slug, "to": name})
        if instead_of is not None:
            records.append({"edge": "Supersedes", "from": slug, "to": instead_of})
        return self.graph.load(records, mode="merge", message=f"learn {slug} from {title}").commit_id

    def relate(self, one: str, how: str, other: str) -> None:
        """Connect two entities."""
        self.graph.load([{"edge": "RelatedTo", "from": one, "to": other, "data": {"how": how}}], mode="merge")

    def recall(self, question: str, most: int = 3) -> list[dict[str, Any]]:
        """Return the best facts for a question: by meaning and by words, without superseded ones."""
        return self.graph.invoke("recall", {"question": question, "most": most}).to_pylist()

    def around(self, entity: str) -> list[dict[str, Any]]:
        """Return the neighbours of an entity and what is known about them."""
        return self.graph.invoke("around", {"name": entity}).to_pylist()

    def revising(self, topic: str) -> Memory:
        """Return a memory on a branch of its own: what it learns is not shared until it is reviewed."""
        branch = f"agent/{self.graph.actor}/{topic}"
        self.graph.branch_create(branch)
        return Memory(self.graph, branch)

    def propose(self, title: str) -> Proposal:
        """Ask to bring the branch into the shared memory."""
        return self.graph.propose(self.graph.branch, "main", title=title)

    def explain(self, fact: str) -> dict[str, Any]:
        """Return why a fact is believed: its sources, its history, and the commit that set each value."""
        (found,) = self.graph.invoke("why_believe", {"fact": fact}).to_pylist()
        history = [
            (change.op, change.commit.actor, change.commit.message) for change in self.graph.history("Fact", fact)
        ]
        blame = {one.property: one.commit.message for one in self.graph.blame("Fact", fact)}
        return {**found, "history": history, "set_by": blame}


def main() -> None:
    """Learn, recall, revise on a branch, review, land, explain."""
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory.create(Path(folder) / "memory.omni", actor="scout")
        runbook = ("doc://runbook/deploy", "the deployment runbook")
        talk = ("chat://ops/17", "a conversation with operations")
        billing, mara = ("billing", "service"), ("Mara", "person")
        day = "The billing service is deployed on Fridays at noon."
        owner = "Mara owns the billing service."
        learned = "2026-01-05T09:00:00Z"
        memory.remember("deploy-friday", day, about=[billing], source=runbook, at=learned, confidence=0.8)
        memory.remember("owner-mara", owner, about=[billing, mara], source=runbook, at=learned, confidence=0.9)
        memory.relate("Mara", "owns", "billing")

        print("recall: when is billing deployed?")
        for row in memory.recall("When is the billing service deployed?", most=1):
            print(f"  {row['text']}  ({row['confidence']}, from {', '.join(row['sources'])})")
        print("around billing:", [(row["entity"], len(row["facts"])) for row in memory.around("billing")])

        draft = memory.revising("deploy-day")
        draft.remember(
            "deploy-tuesday",
            "The billing service is deployed on Tuesdays, never on Fridays.",
            about=[billing],
            source=talk,
            at="2026-02-10T15:30:00Z",
            confidence=0.95,
            instead_of="deploy-friday",
        )
        print("on main still:", memory.recall("When is billing deployed?", most=1)[0]["fact"])

        proposal = draft.propose("Deployments moved to Tuesday")
        reviewer = og.open(memory.graph.uri, actor="mara", environ={**os.environ, **LOCAL})
        seen = reviewer.proposal(proposal.id)
        print("proposed:", [f"{change.op} {change.table_key}" for change in seen.diff()])
        seen.approve("confirmed with operations").land()
        print("after the landing:", memory.recall("When is billing deployed?", most=1)[0]["fact"])

        told = memory.explain("deploy-tuesday")
        print("why:", told["sources"], "instead of", told["replaced"])
        print("history:", told["history"])


if __name__ == "__main__":
    main()
