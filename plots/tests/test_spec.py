"""The specifications against goldens, and what must hold for every one of them.

  FOREWARP_UPDATE_GOLDEN=1 python -m unittest discover -s plots/tests     writes the goldens anew
"""
import json
import os
import unittest

import support
from forewarp_plots import spec


def golden(name):
    return os.path.join(support.HERE, "golden", name + ".json")


class Golden(unittest.TestCase):
    maxDiff = 2000

    def test_every_kind(self):
        pictures = support.pictures()
        self.assertEqual(set(pictures), set(spec.KINDS))
        for name, (kind, launches, options) in pictures.items():
            with self.subTest(name):
                text = spec.text_of(spec.build(kind, launches, options)[0])
                if os.environ.get("FOREWARP_UPDATE_GOLDEN"):
                    with open(golden(name), "w", encoding="utf-8") as file:
                        file.write(text)
                with open(golden(name), encoding="utf-8") as file:
                    self.assertEqual(text, file.read())


class Everywhere(unittest.TestCase):
    def setUp(self):
        self.maxDiff = 400
        self.built = {name: spec.build(*picture) for name, picture in support.pictures().items()}

    def test_names_gpu_kernel_and_version(self):
        for name, (built, _) in self.built.items():
            said = " ".join(built["title"]["subtitle"])
            with self.subTest(name):
                self.assertIn("h200-sxm", said)
                self.assertIn("forewarp 0.", said)
                for launch in support.pictures()[name][1][:1]:
                    self.assertIn(launch.short_kernel[:12], said)

    def test_says_what_is_measured(self):
        for name in ("roofline", "stalls", "ladder", "traffic", "validation", "timeline", "sweep"):
            self.assertIn("measured", " ".join(self.built[name][0]["title"]["subtitle"]), name)

    def test_every_data_set_named_is_there_and_has_rows(self):
        def names(value):
            if isinstance(value, dict):
                if isinstance(value.get("data"), dict) and "name" in value["data"]:
                    yield value["data"]["name"]
                for item in value.values():
                    yield from names(item)
            elif isinstance(value, list):
                for item in value:
                    yield from names(item)
        for name, (built, _) in self.built.items():
            for used in names(built):
                self.assertIn(used, built["datasets"], name)

    def test_every_field_is_in_a_row(self):
        """A template that names a field which no row has draws nothing, silently."""
        optional = {"measured", "error", "text", "mark", "divergent", "named", "short", "size", "link", "bound", "x2", "y2", "shade", "bottom", "left", "right", "top", "turn", "unit", "centre", "middle"}
        def fields(value):
            if isinstance(value, dict):
                if "field" in value:
                    yield value["field"]
                for item in value.values():
                    yield from fields(item)
            elif isinstance(value, list):
                for item in value:
                    yield from fields(item)
        for name, (built, _) in self.built.items():
            there = {key for rows in built["datasets"].values() for row in rows for key in row}
            template = {key: value for key, value in built.items() if key != "datasets"}
            missing = set(fields(template)) - there - optional
            self.assertFalse(missing, name)

    def test_walk_fields_are_in_rows(self):
        for name, (built, _) in self.built.items():
            table, fields = spec.WALK[name]
            self.assertTrue(built["datasets"][table], name)
            self.assertTrue(any(field in row for row in built["datasets"][table] for field in fields), name)

    def test_fetches_nothing(self):
        for name, (built, _) in self.built.items():
            text = json.dumps({k: v for k, v in built.items() if k != "$schema"})
            self.assertNotIn("http", text, name)
            self.assertNotIn('"url"', text, name)

    def test_legends_and_axes_name_what_is_drawn(self):
        launches = support.launches("launch", "divergence_by_lane_2_check_1000")
        coalesced = spec.build("coalescing", launches)[0]["spec"]["layer"][0]["encoding"]
        self.assertEqual(coalesced["color"]["legend"]["values"], ["asked for"])
        self.assertNotIn("rules", coalesced["x"]["axis"]["title"])
        bytes_moved = [spec.build("traffic", of)[0]["layer"][0]["encoding"]["x"]["axis"]["title"] for of in (launches, support.launches("suite"))]
        self.assertEqual(bytes_moved, ["Bytes moved", "Bytes moved: bar predicted, diamond measured"])
        self.assertIn("line formula", self.built["traffic"][0]["layer"][0]["encoding"]["x"]["axis"]["title"])

    def test_clocks_of_profiles_are_said_where_they_are_others(self):
        launches = support.launches("suite", "sgemm_shared_tiled_512")
        self.assertFalse([note for note in spec.build("ladder", launches)[1] if "MHz" in note])
        launches[0].counters["gpu__time_duration.sum"]["measured"] *= 1.2
        for kind in ("ladder", "roofline"):
            self.assertTrue([note for note in spec.build(kind, launches)[1] if note.startswith("Measured at 1,6")], kind)

    def test_causes_have_their_names(self):
        self.assertEqual(support.launches("suite", "sgemm_shared_tiled_512")[0].bound, "shared memory")
        launch = support.launches("suite", "relu_f32_1mi")[0]
        launch.case["bottleneck"] = {"kind": "pipe_fma", "sentence": "Bound by FMA pipe: 60 % of its time (1.00 us)."}
        self.assertEqual(launch.bound, "FMA pipe")


if __name__ == "__main__":
    unittest.main()
