"""Digits as strokes, as a hand draws them on the pad."""

import numpy as np

PAD = 560
WIDTHS = range(16, 73, 4)


def _arc(x: float, y: float, across: float, down: float, start: float, end: float) -> list:
    """Points of an ellipse; angles in degrees, clockwise from the right."""
    angles = np.radians(np.linspace(start, end, 14))
    return [(x + across * np.cos(a), y + down * np.sin(a)) for a in angles]


SHAPES = {
    0: [_arc(0.5, 0.5, 0.3, 0.5, -90, 270)],
    1: [[(0.35, 0.2), (0.55, 0), (0.5, 1)]],
    2: [[*_arc(0.5, 0.27, 0.33, 0.27, -170, 40), (0.15, 1), (0.9, 0.97)]],
    3: [[*_arc(0.45, 0.25, 0.33, 0.25, -150, 90), *_arc(0.45, 0.75, 0.38, 0.25, -90, 150)]],
    4: [[(0.55, 0), (0.1, 0.62), (0.9, 0.62)], [(0.7, 0.3), (0.66, 1)]],
    5: [[(0.25, 0), (0.2, 0.45), *_arc(0.45, 0.7, 0.37, 0.3, -110, 140)], [(0.25, 0), (0.8, 0)]],
    6: [[(0.7, 0), (0.35, 0.3), *_arc(0.48, 0.72, 0.28, 0.28, 180, 530)]],
    7: [[(0.1, 0.03), (0.85, 0), (0.4, 1)], [(0.3, 0.5), (0.75, 0.5)]],
    8: [[*_arc(0.5, 0.25, 0.25, 0.25, 60, -270), *_arc(0.5, 0.75, 0.3, 0.25, -90, 270)]],
    9: [[*_arc(0.48, 0.28, 0.28, 0.28, 0, -350), (0.72, 0.55), (0.6, 1)]],
}


def digit(rng: np.random.Generator, label: int, width: int | None = None) -> list[dict]:
    """A digit of any size, slant and place on the pad, by an unsteady hand."""
    width = int(rng.choice(WIDTHS)) if width is None else width
    size = rng.uniform(0.35, 0.85) * PAD
    spread = size * np.array([rng.uniform(0.55, 0.9), 1])
    free = np.maximum(PAD - spread - width, 0)
    corner = width / 2 + rng.random(2) * free
    slant = rng.uniform(-0.2, 0.25)
    drawing = []
    for shape in SHAPES[label]:
        points = np.array(shape) + [[slant * (0.5 - y), 0] for _, y in shape]
        points = corner + spread * points + rng.normal(0, 0.012 * size, (len(points), 2))
        whole = np.rint(points).astype(int)
        drawing.append({"width": width, "points": whole.ravel().tolist()})
    return drawing
