"""Work on a graph until a number of interrupts, and report how each surfaced."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import omnigraph as og


class Interrupts:
    """Raises `KeyboardInterrupt` during work; an interrupt between two units of work waits for the next unit."""

    def __init__(self) -> None:
        self.working = False
        self.waiting = False
        signal.signal(signal.SIGINT, self.handle)

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.working:
            self.working = False
            raise KeyboardInterrupt
        self.waiting = True

    def start(self) -> None:
        self.working = True
        if self.waiting:
            self.waiting = self.working = False
            raise KeyboardInterrupt


def main(uri: str, times: int) -> None:
    interrupts = Interrupts()
    graph = og.open(uri)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    seen, number = 0, 0
    while seen < times:
        number += 1
        try:
            interrupts.start()
            work(graph, uri, number)
            interrupts.working = False
            continue
        except KeyboardInterrupt:
            told = "KeyboardInterrupt"
        except BaseException as error:
            told = f"{type(error).__name__}: {error}".replace("\n", " ")
        interrupts.working = False
        seen += 1
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()


def work(graph: og.Graph, uri: str, number: int) -> None:
    match number % 4:
        case 0:
            graph.mutate(f'query q() {{ insert P {{ name: "n{number}" }} }}')
        case 1:
            og.open(uri).query('query q() { match { $p: P search($p.text, "x") } return { count($p) as n } }')
        case 2:
            graph.optimize()
        case _:
            records = [{"type": "P", "data": {"name": f"m{number}-{at}"}} for at in range(200)]
            graph.load(records, mode="append")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
