"""Labels of rooflines: beside what they name, on nothing else."""
import unittest

import support
from forewarp_plots import placement, roofline, spec
from forewarp_plots.results import read_results


class Shapes(unittest.TestCase):
    def test_overlap(self):
        a = placement.box(0, 0, 10, 10)
        self.assertTrue(placement.overlap(a, placement.box(9, 9, 5, 5)))
        self.assertFalse(placement.overlap(a, placement.box(11, 0, 5, 5)))
        self.assertTrue(placement.overlap(a, placement.box(11, 0, 5, 5), 2))
        self.assertTrue(placement.overlap(a, [(-5, 5), (20, 5)]))
        self.assertFalse(placement.overlap(a, [(-5, 11), (20, 11)]))
        self.assertFalse(placement.overlap(a, [(12, 5), (20, 5)]))  # on the same height, but beside it
        self.assertFalse(placement.overlap(a, [(15, -10), (25, 20)]))
        self.assertTrue(placement.overlap(a, placement.turned(14, 5, 10, 10, 45, 0.5, 0.5)))
        self.assertFalse(placement.overlap(a, placement.turned(18, 5, 10, 10, 45, 0.5, 0.5)))

    def test_apart(self):
        self.assertEqual(placement.apart([10, 40, 80], 12, 0, 100), [10, 40, 80])
        self.assertEqual(placement.apart([50, 50], 10, 0, 100), [45, 55])
        self.assertEqual(placement.apart([0, 0, 2], 10, 0, 100), [0, 10, 20])
        self.assertEqual(placement.apart([98, 99], 10, 0, 100), [90, 100])
        self.assertEqual(placement.apart([50, 52, 58], 10, 0, 100), [50 - 20 / 3, 60 - 20 / 3, 70 - 20 / 3])


class Roofs(unittest.TestCase):
    def setUp(self):
        self.launches = read_results([support.result("suite")], ["sgemm_shared_tiled_512", "sgemm_warp_tiled_512"])

    def test_every_type_has_its_roof(self):
        data, _, _ = roofline.roofline(self.launches, spec.Options())
        said = " ".join(row["text"] for row in data["roof_names"])
        for name in ("fp32", "fp64", "int32", "fp16", "bf16", "tf32", "fp8", "int8"):
            self.assertIn(name, said)
        self.assertIn("66.9 TFLOP/s", said)
        self.assertIn("2.14 PFLOP/s", said)

    def test_machines_are_compared_type_by_type(self):
        tpu = spec.Options(machines=[{"name": "tpu", "title": "a TPU", "pipes": {"bf16": 1e14, "int8": 2e14}, "levels": {"HBM": 1e12}}])
        data, _, _ = roofline.roofline(self.launches, tpu)
        said = [row["text"] for row in data["roof_names"]]
        for machine in ("h200-sxm", "tpu"):
            for name in ("bf16", "int8"):
                self.assertTrue(any(text.startswith(f"{machine}: {name} tensor") for text in said), (machine, name, said))

    def test_every_point_and_slope_is_named(self):
        for width in (None, 356, 500, 1200):
            data, notes, _ = roofline.roofline(self.launches, spec.Options(width=width))
            said = [row["text"] for row in data["point_names"]]
            for order, launch in enumerate(self.launches):
                self.assertTrue(launch.id in said or str(order + 1) in said and any(launch.id in note for note in notes), width)
            slopes = [row["text"].split()[0] for row in data["slope_names"]] + " ".join(notes).replace(",", "").split()
            for level in ("L1", "L2", "HBM"):
                self.assertIn(level, slopes, width)


if __name__ == "__main__":
    unittest.main()
