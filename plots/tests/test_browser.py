"""Pages in a real browser: charts are there, nothing is complained about, no request leaves, tooltips and keys work.

Skipped without Chromium or vl-convert. FOREWARP_SCREENSHOTS=FOLDER keeps a screenshot of each page at two sizes.
"""
import os
import tempfile
import unittest

import browser
import support
from forewarp_plots import render, report, spec

try:
    import vl_convert  # noqa: F401
    HAVE = browser.PROGRAM is not None
except ImportError:
    HAVE = False

SIZES = ((1280, 900, False), (420, 800, True))
WIDTHS = (420, 1280, 1920)

# Lists labels that are cut off or lie on one another.
with open(os.path.join(support.HERE, "boxes.js"), encoding="utf-8") as file:
    BOXES = file.read()

# A mark of the first chart in view, as its middle on the screen.
MIDDLE_OF_A_MARK = """(() => {
  const chart = document.querySelector('.chart');
  chart.scrollIntoView({block: 'center'});
  const boxes = [...chart.querySelectorAll('.mark-rect path, .mark-symbol.role-mark path, .mark-rect.role-mark path')]
    .map((m) => m.getBoundingClientRect()).filter((b) => b.width > 2 && b.height > 2);
  const b = boxes[Math.floor(boxes.length / 2)];
  return [b.x + b.width / 2, b.y + b.height / 2];
})()"""


@unittest.skipUnless(HAVE, "needs Chromium and vl-convert-python")
class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        built, notes = spec.build(*support.pictures()["waves"])
        cls.pages = {"chart": cls.write("chart", render.chart_page("waves", built, notes, spec.build_narrow(*support.pictures()["waves"]))),
                     "report": cls.write("report", report.page(support.launches("launch", "divergence_by_lane_2_check_1000"))),
                     "suite": cls.write("suite", report.page(support.launches("suite"))),
                     "kinds": cls.write("kinds", cls.every_kind())}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def every_kind(cls):
        """A page with a picture of each kind."""
        charts, body = {}, "<main>"
        for name, picture in support.pictures().items():
            built, notes = spec.build(*picture)
            charts[name] = (picture[0], built, spec.build_narrow(*picture))
            body += render.figure(name, picture[0], built, notes)
        return render.page("every kind", body + "</main>", charts)

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.folder.name, name + ".html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, name, width, height, dark):
        page = browser.Browser(width, height, dark)
        self.addCleanup(page.close)
        page.open(self.pages[name])
        page.run("document.querySelectorAll('details.launch').forEach((d) => { d.open = true; })")
        page.run("window.forewarpDrawAll()")
        return page

    def test_charts_are_there_and_nothing_leaves(self):
        for name in self.pages:
            for width, height, dark in SIZES:
                with self.subTest(f"{name} at {width}"):
                    page = self.start(name, width, height, dark)
                    states = page.run("[...document.querySelectorAll('.chart')].map((c) => [c.dataset.chart, c.dataset.drawn, "
                                      "c.querySelectorAll('svg .role-mark path, svg .role-mark text, svg .role-mark line').length])")
                    self.assertTrue(states)
                    for chart, state, marks in states:
                        self.assertEqual(state, "done", chart)
                        self.assertGreater(marks, 0, chart)
                    self.assertEqual(page.errors, [])
                    outside = [url for url in page.requests if not url.startswith(("file:///", "data:", "blob:"))]
                    self.assertEqual(outside, [])
                    self.assertEqual(sum(url.startswith("file:") for url in page.requests), 1)
                    wide = page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    self.assertLessEqual(wide, 1, "the page itself scrolls sideways")
                    shots = os.environ.get("FOREWARP_SCREENSHOTS")
                    if shots:
                        page.run("window.scrollTo(0, 0)")
                        page.screenshot(os.path.join(shots, f"{name}_{width}.png"))

    def test_labels_are_whole_and_apart(self):
        for name in ("kinds", "report", "suite"):
            for width in WIDTHS:
                for dark in (False, True):
                    with self.subTest(f"{name} at {width}, {'dark' if dark else 'light'}"):
                        page = self.start(name, width, 900, dark)
                        self.assertEqual(page.run(BOXES), [])
                        self.assertEqual(page.errors, [])
                        wide = page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                        self.assertLessEqual(wide, 1, "the page itself scrolls sideways")
                        page.close()

    def test_labels_that_lie_on_one_another_are_found(self):
        page = self.start("chart", *SIZES[0])
        page.run("(() => { const one = document.querySelector('.chart svg text'); const copy = one.cloneNode(true); "
                 "copy.textContent = 'on top'; one.parentNode.appendChild(copy); })()")
        self.assertTrue(any("lies on" in fault for fault in page.run(BOXES)))
        page.run("document.querySelector('.chart svg text').setAttribute('transform', 'translate(-500,0)')")
        self.assertTrue(any("cut off" in fault for fault in page.run(BOXES)))

    def test_dark_pages_have_no_white_ground(self):
        page = self.start("kinds", 1280, 900, True)
        grounds = page.run("[...document.querySelectorAll('.chart svg .background')].map((b) => b.getAttribute('fill'))")
        self.assertFalse([fill for fill in grounds if fill not in (None, "none", "transparent")])

    def test_tooltips(self):
        page = self.start("chart", *SIZES[0])
        page.hover(*page.run(MIDDLE_OF_A_MARK))
        said = page.run("new Promise((done) => setTimeout(() => { const t = document.getElementById('vg-tooltip-element'); "
                        "done(t && t.classList.contains('visible') ? t.textContent : ''); }, 200))")
        self.assertIn("from (us)", said)

    def test_keyboard(self):
        page = self.start("report", *SIZES[0])
        reached = ""
        for _ in range(60):
            page.key("Tab")
            reached = page.run("document.activeElement.dataset.chart || ''")
            if reached:
                break
        self.assertTrue(reached, "Tab reaches no chart")
        point = f"document.getElementById('{reached}-point').textContent"
        page.key("ArrowRight")
        first = page.run(point)
        page.key("ArrowRight")
        self.assertTrue(first.startswith("1 of "))
        self.assertTrue(page.run(point).startswith("2 of "))
        page.key("End")
        self.assertIn(first.split()[2].rstrip(":") + " of", page.run(point))
        page.key("Home")
        self.assertEqual(page.run(point), first)

    def test_sections_open_by_key_and_link(self):
        page = browser.Browser()
        self.addCleanup(page.close)
        page.open(self.pages["suite"])
        closed = "document.querySelectorAll('details.launch:not([open])').length"
        before = page.run(closed)
        page.run("document.querySelector('details.launch summary').focus()")
        page.key("Enter")
        self.assertEqual(page.run(closed), before - 1)
        page.run("location.hash = '#launch-2'")
        self.assertTrue(page.run("new Promise((done) => setTimeout(() => done(document.getElementById('launch-2').open), 100))"))

    def test_paper(self):
        page = self.start("report", *SIZES[0])
        data = page.pdf()
        self.assertTrue(data.startswith(b"%PDF"))
        self.assertGreater(len(data), 20000)


if __name__ == "__main__":
    unittest.main()
