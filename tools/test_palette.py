"""The colours of pages can be distinguished, also by colour-blind readers, and have enough contrast with the page."""

import itertools
import re
import unittest
from pathlib import Path

CSS = Path(__file__).resolve().parent.parent / "crates/page/assets/report.css"

# Machado, Oliveira and Fernandes 2009, Table 1, severity 1.0: what an eye without one kind of cone sees, in linear RGB.
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no long cones": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no medium cones": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
# WCAG 2.2, 1.4.11: graphics; 1.4.3: text.
GRAPHICS, TEXT = 3.0, 4.5
# A just noticeable difference is about 2.3 in CIELAB; the colours of separate lines need more.
APART = 8.0


def linear(colour: str) -> tuple[float, ...]:
    """Red, green and blue as linear light, from 0 to 1."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return tuple(v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)


def luminance(colour: str) -> float:
    """WCAG's relative luminance."""
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: tuple[float, ...]) -> tuple[float, float, float]:
    """CIELAB, under D65."""
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    xyz = [sum(a * b for a, b in zip(row, rgb)) / w for row, w in zip(rows, white)]
    f = [v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def seen(colour: str, eye: str) -> tuple[float, float, float]:
    """A colour as an eye sees it, in CIELAB."""
    rgb = linear(colour)
    return lab(tuple(min(1.0, max(0.0, sum(a * b for a, b in zip(row, rgb)))) for row in EYES[eye]))


def schemes() -> list[dict[str, str]]:
    """The variables of the light page, and of the dark one."""
    whole = ("--page:", "--series-0:")
    blocks = re.findall(r"\{([^{}]*)\}", CSS.read_text())
    return [
        dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", block)) for block in blocks if all(w in block for w in whole)
    ]


class Palette(unittest.TestCase):
    def test_both_schemes_are_there(self) -> None:
        self.assertEqual(len(schemes()), 2)

    def test_lines_and_text_stand_out(self) -> None:
        for scheme in schemes():
            for name, colour in scheme.items():
                if name.startswith("series-"):
                    self.assertGreaterEqual(contrast(colour, scheme["page"]), GRAPHICS, name)
            for name in ("text", "quiet", "accent", "caution"):
                self.assertGreaterEqual(contrast(scheme[name], scheme["page"]), TEXT, name)

    def test_neighbours_are_distinguishable_to_every_eye(self) -> None:
        for scheme in schemes():
            series = [colour for name, colour in sorted(scheme.items()) if name.startswith("series-")]
            for eye in EYES:
                for one, other in itertools.combinations(series, 2):
                    far = sum((a - b) ** 2 for a, b in zip(seen(one, eye), seen(other, eye))) ** 0.5
                    self.assertGreater(far, APART, f"{one} and {other} with {eye}")


if __name__ == "__main__":
    unittest.main()
