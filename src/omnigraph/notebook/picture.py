"""Draws a small graph as SVG with a deterministic force-directed layout.

Every pair of dots repels, every line pulls its ends together, and the step size decreases. Dots start on a circle in
their order, so the layout does not depend on random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

DOTS_MOST = 40
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#ff9da6")
_ROUNDS = 150
_RADIUS = 9
_LABEL_MOST = 22


@dataclass(frozen=True)
class Dot:
    """Node of the picture: its key, its label, and the kind that determines its colour."""

    key: str
    label: str
    kind: str


@dataclass(frozen=True)
class Line:
    """Edge of the picture, between two dots given by key."""

    source: str
    target: str
    label: str = ""
    directed: bool = True
    several: bool = False
    """True if the line stands for a path."""


def draw(dots: Iterable[Dot], lines: Iterable[Line], *, width: int = 460, height: int = 320) -> str:
    """Return the picture; if there are many dots, only the first are drawn and a note states it."""
    everyone = list({dot.key: dot for dot in dots}.values())
    shown = everyone[:DOTS_MOST]
    if not shown:
        return ""
    known = {dot.key for dot in shown}
    kept = [line for line in dict.fromkeys(lines) if line.source in known and line.target in known]
    places = place([dot.key for dot in shown], [(line.source, line.target) for line in kept], width, height)
    colours = colours_of(everyone)
    body = [_line(line, bend, places) for line, bend in _bends(kept)]
    body += [_dot(dot, places, colours) for dot in shown]
    body += [_legend(number, kind, colour) for number, (kind, colour) in enumerate(colours.items())]
    if len(everyone) > len(shown):
        body.append(f'<text x="8" y="{height - 8}" opacity=".6">{len(shown)} of {len(everyone)} nodes</text>')
    frame = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    style = 'font-family="sans-serif" font-size="10" fill="currentColor"'
    arrow = (
        '<defs><marker id="omnigraph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#999"/></marker></defs>'
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" {frame} {style}>{arrow}{"".join(body)}</svg>'


def colours_of(dots: Iterable[Dot]) -> dict[str, str]:
    """Return a colour for each kind of dot, in order of occurrence."""
    kinds = dict.fromkeys(dot.kind for dot in dots)
    return {kind: _COLOURS[number % len(_COLOURS)] for number, kind in enumerate(kinds)}


def _bends(lines: Iterable[Line]) -> list[tuple[Line, int]]:
    """Return each line with its bend: 0 for the only line between two dots, so that several lines do not overlap."""
    drawn: dict[frozenset[str], list[Line]] = {}
    for line in lines:
        drawn.setdefault(frozenset((line.source, line.target)), []).append(line)
    return [(line, _bend(number, len(group))) for group in drawn.values() for number, line in enumerate(group)]


def _bend(number: int, count: int) -> int:
    return 0 if count == 1 else number + 1


def place(keys: list[str], ends: list[tuple[str, str]], width: int, height: int) -> Mapping[str, tuple[float, float]]:
    """Return the position of each dot within the frame."""
    count = len(keys)
    if count == 1:
        return {keys[0]: (width / 2, height / 2)}
    x = [math.cos(2 * math.pi * number / count) for number in range(count)]
    y = [math.sin(2 * math.pi * number / count) for number in range(count)]
    at = {key: number for number, key in enumerate(keys)}
    pairs = [(at[a], at[b]) for a, b in ends if a != b]
    wanted = math.sqrt(4 / count)
    for round_ in range(_ROUNDS):
        heat = 0.15 * (1 - round_ / _ROUNDS)
        dx, dy = [0.0] * count, [0.0] * count
        for i in range(count):
            for j in range(i):
                ax, ay = x[i] - x[j], y[i] - y[j]
                push = wanted * wanted / max(ax * ax + ay * ay, 1e-4)
                dx[i], dy[i], dx[j], dy[j] = dx[i] + ax * push, dy[i] + ay * push, dx[j] - ax * push, dy[j] - ay * push
        for i, j in pairs:
            ax, ay = x[i] - x[j], y[i] - y[j]
            pull = math.hypot(ax, ay) / wanted
            dx[i], dy[i], dx[j], dy[j] = dx[i] - ax * pull, dy[i] - ay * pull, dx[j] + ax * pull, dy[j] + ay * pull
        for i in range(count):
            # The centre attracts dots, so that unconnected ones do not drift away.
            dx[i], dy[i] = dx[i] - 0.3 * x[i], dy[i] - 0.3 * y[i]
            far = max(math.hypot(dx[i], dy[i]), 1e-9)
            step = min(far, heat) / far
            x[i], y[i] = x[i] + dx[i] * step, y[i] + dy[i] * step
    return {key: (_fit(x, n, 50, width - 70), _fit(y, n, 52, height - 24)) for key, n in at.items()}


def _fit(values: list[float], number: int, low: float, high: float) -> float:
    least, most = min(values), max(values)
    return low + (values[number] - least) / (most - least) * (high - low) if most - least > 1e-9 else (low + high) / 2


def _line(line: Line, bend: int, places: Mapping[str, tuple[float, float]]) -> str:
    (ax, ay), (bx, by) = places[line.source], places[line.target]
    dashed = ' stroke-dasharray="4 3"' if line.several else ""
    stroke = f'stroke="#999" fill="none"{dashed}'
    arrow = ' marker-end="url(#omnigraph-arrow)"' if line.directed else ""
    title = f"<title>{escape(line.label)}</title>"
    if line.source == line.target:
        size = 30 + 14 * max(bend - 1, 0)
        start, end = f"M{ax - 6:.0f} {ay - _RADIUS + 2:.0f}", f"{ax + 6:.0f} {ay - _RADIUS + 1:.0f}"
        loop = f"{start}C{ax - size:.0f} {ay - size - 8:.0f} {ax + size:.0f} {ay - size - 8:.0f} {end}"
        return f'<path d="{loop}" {stroke}{arrow}>{title}</path>' + _label(line, ax, ay - 0.75 * size - 10)
    far = max(math.hypot(bx - ax, by - ay), 1.0)
    dx, dy = (bx - ax) / far, (by - ay) / far
    # Bends are measured to the left of the direction of the line; lines in opposite directions bend apart.
    aside = 16 * bend
    mx, my = (ax + bx) / 2 - dy * aside, (ay + by) / 2 + dx * aside
    near = max(math.hypot(bx - mx, by - my), 1.0)
    ex, ey = bx - (bx - mx) / near * (_RADIUS + 2), by - (by - my) / near * (_RADIUS + 2)
    drawn = f'<path d="M{ax:.0f} {ay:.0f}Q{mx:.0f} {my:.0f} {ex:.0f} {ey:.0f}" {stroke}{arrow}>{title}</path>'
    return drawn + _label(line, (ax + ex) / 4 + mx / 2, (ay + ey) / 4 + my / 2 - 3)


def _label(line: Line, x: float, y: float) -> str:
    place = f'x="{x:.0f}" y="{y:.0f}"'
    return f'<text {place} opacity=".7" font-size="8" text-anchor="middle">{escape(line.label)}</text>'


def _dot(dot: Dot, places: Mapping[str, tuple[float, float]], colours: Mapping[str, str]) -> str:
    x, y = places[dot.key]
    label = dot.label if len(dot.label) <= _LABEL_MOST else dot.label[: _LABEL_MOST - 1] + "…"
    title = f"<title>{escape(f'{dot.kind} {dot.label}')}</title>"
    circle = f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS}" fill="{colours[dot.kind]}">{title}</circle>'
    return circle + f'<text x="{x:.0f}" y="{y + _RADIUS + 11:.0f}" text-anchor="middle">{escape(label)}</text>'


def _legend(number: int, kind: str, colour: str) -> str:
    y = 12 + 13 * number
    return f'<circle cx="10" cy="{y}" r="4" fill="{colour}"/><text x="18" y="{y + 4}">{escape(kind)}</text>'
