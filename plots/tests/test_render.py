"""Rendering: the same bytes each time, and files whole or not at all. Skipped where vl-convert is not installed."""
import os
import re
import tempfile
import unittest

import support
from forewarp_plots import render, report, spec

try:
    import vl_convert  # noqa: F401
    HAVE = True
except ImportError:
    HAVE = False


@unittest.skipUnless(HAVE, "vl-convert-python is not installed")
class Rendering(unittest.TestCase):
    def test_svg_is_stable_and_has_marks(self):
        for name, picture in support.pictures().items():
            with self.subTest(name):
                first = render.svg(spec.build(*picture)[0])
                self.assertTrue(first == render.svg(spec.build(*picture)[0]), "drawn twice, other bytes")
                self.assertTrue("Liberation Sans" in first)
                for word in ("NaN", "undefined", "Infinity"):
                    self.assertFalse(re.findall(f".{{60}}{word}.{{30}}", first)[:2])

    def test_png(self):
        self.assertTrue(render.png(spec.build(*support.pictures()["ladder"])[0]).startswith(b"\x89PNG"))

    def test_pages_fetch_nothing(self):
        built, notes = spec.build(*support.pictures()["waves"])
        pages = {"chart": render.chart_page("waves", built, notes, spec.build_narrow(*support.pictures()["waves"])), "report": report.page(support.launches("launch"))}
        for name, page in pages.items():
            self.assertIn("default-src 'none'", page, name)
            markup = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
            self.assertFalse(re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', markup), name)

    def test_names_cannot_break_out_of_a_page(self):
        launches = support.launches("launch")
        for one in launches:
            one.id = "</script><script>alert(1)</script>"
            one.kernel = "<img src=x onerror=alert(1)>(int)"
        page = re.sub(r"<script>.*?</script>", "", report.page(launches), flags=re.S)
        self.assertFalse("<script" in page or "<img" in page or "onerror=alert(1)>" in page)


class Files(unittest.TestCase):
    def test_a_specification_needs_no_vl_convert(self):
        with tempfile.TemporaryDirectory() as folder:
            built, notes = spec.build(*support.pictures()["ladder"])
            render.write("ladder", built, notes, os.path.join(folder, "x.json"))
            self.assertEqual(os.listdir(folder), ["x.json"])

    def test_a_folder_that_is_not_there(self):
        with self.assertRaises(render.InputError):
            render.write_file("/nonexistent/folder/x.svg", b"")


if __name__ == "__main__":
    unittest.main()
