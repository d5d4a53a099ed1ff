"""Where labels go, in pixels: beside what they name, on nothing else.

Shapes are convex polygons, lists of (x, y); a line is one of two corners.
"""
import math

# Widths of Liberation Sans (Helvetica's metrics) in thousandths of the font's size.
_WIDE = set("CDGHNOQRUABEKPSVXY&TFZ@")
_WIDTHS = {" ": 278, "i": 222, "l": 222, "j": 222, "t": 278, ".": 278, ",": 278, ":": 278, "/": 278, "f": 278, "I": 278, "r": 333,
           "(": 333, ")": 333, "-": 333, "m": 833, "w": 722, "M": 833, "W": 944, "%": 889, "_": 556}


_SPARE = 1.12  # where a browser has another font


def text_width(text, size):
    return _SPARE * size / 1000 * sum(_WIDTHS.get(c, 690 if c in _WIDE else 556) for c in text)


def box(x, y, width, height):
    """Corners of a rectangle by its upper left one."""
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


def turned(x, y, width, height, angle, left=0.0, up=1.0):
    """A label's rectangle about its anchor (x, y), turned by `angle` degrees (clockwise, as screens count): `left` is the part of its
    width on the left of the anchor, `up` the part of its height above."""
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return [(x + dx * c - dy * s, y + dx * s + dy * c)
            for dx, dy in box(-left * width, -up * height, width, height)]


def _axes(shape):
    for (x1, y1), (x2, y2) in zip(shape, shape[1:] + shape[:1]):
        if (x1, y1) != (x2, y2):
            yield y1 - y2, x2 - x1
            if len(shape) == 2:  # a line is as thin along itself
                yield x2 - x1, y2 - y1


def overlap(a, b, gap=0.0):
    """Whether two convex shapes come nearer than `gap`: no axis parts them."""
    for ax, ay in (*_axes(a), *_axes(b)):
        length = math.hypot(ax, ay)
        of_a = [(x * ax + y * ay) / length for x, y in a]
        of_b = [(x * ax + y * ay) / length for x, y in b]
        if min(of_a) >= max(of_b) + gap or min(of_b) >= max(of_a) + gap:
            return False
    return True


class Field:
    """What is taken already, on a ground of width x height."""

    def __init__(self, width, height):
        self.width, self.height, self.taken = width, height, []

    def block(self, *shapes):
        self.taken += shapes

    def free(self, shape, gap=1.0):
        return all(0 <= x <= self.width and 0 <= y <= self.height for x, y in shape) and \
            not any(overlap(shape, other, gap) for other in self.taken)

    def place(self, candidates):
        """The first (shape, what) that is free, which it takes; None if none is."""
        for shape, what in candidates:
            if self.free(shape):
                self.taken.append(shape)
                return what
        return None


def apart(places, distance, low, high):
    """Heights as near to `places` (sorted) as the distance between neighbours allows, within low and high."""
    groups = []  # [sum of wishes at the group's start, count]
    for place in places:
        groups.append([place, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] + groups[-2][1] * distance > groups[-1][0] / groups[-1][1]:
            last, count = groups.pop()
            groups[-1][0] += last - count * groups[-1][1] * distance
            groups[-1][1] += count
    out = []
    for total, count in groups:
        start = total / count
        out += [start + i * distance for i in range(count)]
    for i, value in enumerate(out):
        out[i] = max(value, low + i * distance)
    for i in range(len(out) - 1, -1, -1):
        out[i] = min(out[i], high - (len(out) - 1 - i) * distance)
    return out
