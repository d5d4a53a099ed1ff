"""Pages in a real browser: charts are there, nothing is complained about, no request leaves, tooltips and keys work.

Skipped without Chromium or vl-convert. FOREWARP_SCREENSHOTS=FOLDER keeps a screenshot of each page at two sizes.
"""
import os
import re
import tempfile
import unittest
import zlib

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
        cls.pages = {"chart": cls.write("chart", cls.chart()),
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
            small, narrow_notes = spec.build_narrow(*picture)
            charts[name] = (picture[0], built, small)
            body += render.figure(name, picture[0], built, notes, narrow_notes)
        return render.page("every kind", body + "</main>", charts)

    @classmethod
    def chart(cls, theme="auto"):
        built, notes = spec.build(*support.pictures()["waves"])
        return render.chart_page("waves", built, notes, spec.build_narrow(*support.pictures()["waves"]), theme)

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

    def static_faults(self, name, pictures):
        """What is wrong with the labels of drawn SVGs, by name, laid out by the browser as a page would have them."""
        body = "".join(f'<div class="chart" data-chart="{one}">{re.sub("<[?!][^>]*>", "", text)}</div>' for one, text in pictures.items())
        page = browser.Browser(2000, 900)
        self.addCleanup(page.close)
        page.open(self.write(name, f'<!doctype html><meta charset="utf-8"><body>{body}</body>'))
        faults = page.run(BOXES)
        page.close()
        return faults

    def test_labels_of_pictures_are_whole_and_apart(self):
        for theme, width in (("light", None), ("dark", 420), ("light", 420), ("dark", 1280), ("light", 1920)):
            with self.subTest(f"{theme}, {width or 'its own width'}"):
                drawn = {}
                for name, (kind, launches, options) in support.pictures().items():
                    options.theme, options.width = theme, width
                    drawn[name] = render.svg(render.fitted(spec.build(kind, launches, options)[0], width))
                    if theme == "dark":
                        self.assertIn('fill="#14181f"', drawn[name], "no dark ground")
                self.assertEqual(self.static_faults(f"static_{theme}_{width}", drawn), [])

    def test_labels_of_the_gallery_are_whole_and_apart(self):
        drawn = {}
        for folder in (os.path.join(support.PLOTS, "gallery"), os.path.join(support.ROOT, "docs", "pictures")):
            for file in sorted(os.listdir(folder)):
                if file.endswith(".svg"):
                    with open(os.path.join(folder, file), encoding="utf-8") as picture:
                        drawn[file] = picture.read()
        self.assertEqual(self.static_faults("gallery", drawn), [])

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

    def test_focus_is_seen_in_the_order_of_the_page(self):
        """Tab goes down the page, and what it reaches has an outline; the first stop skips the list of launches."""
        page = self.start("suite", *SIZES[0])
        places, outlines = [], []
        for step in range(40):
            page.key("Tab")
            where = page.run("(() => { const e = document.activeElement, b = e.getBoundingClientRect(), s = getComputedStyle(e); "
                             "return [e.tagName, e.className, b.top + scrollY, !!e.closest('nav, .skip'), "
                             "s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2, b.right > 0 && b.bottom > 0 && b.left >= 0]; })()")
            if step == 0:
                self.assertEqual(where[1], "skip")
            self.assertTrue(where[4] and where[5], f"focus on {where[0]} cannot be seen")
            if not where[3]:
                places.append(where[2])
                outlines.append(where[0])
        self.assertGreater(len(places), 10)
        # A chart's menu stands in its corner, after the chart.
        self.assertEqual(places, sorted(places), outlines)

    def test_a_link_leads_to_what_it_names(self):
        page = self.start("suite", *SIZES[0])
        links = page.run("[...document.querySelectorAll('a[href^=\"#\"]:not(.chart a)')].map((a) => a.getAttribute('href').slice(1))")
        self.assertTrue(links)
        for link in links:
            self.assertTrue(page.run(f"!!document.getElementById('{link}')"), link)

    def test_a_theme_is_baked_in(self):
        for theme, dark in (("dark", False), ("light", True), ("auto", False), ("auto", True)):
            with self.subTest(f"{theme}, the system prefers {'dark' if dark else 'light'}"):
                path = self.write(f"report_{theme}", report.page(support.launches("suite", "relu_f32_1mi"), None, theme))
                page = browser.Browser(1280, 900, dark)
                self.addCleanup(page.close)
                page.open(path)
                page.run("window.forewarpDrawAll()")
                ground = page.run("getComputedStyle(document.body).backgroundColor")
                words = page.run("[...new Set([...document.querySelectorAll('.chart svg .role-axis-label text')].map((t) => t.getAttribute('fill')))]")
                wanted = theme == "dark" or (theme == "auto" and dark)
                self.assertEqual(ground, "rgb(20, 24, 31)" if wanted else "rgb(255, 255, 255)")
                self.assertEqual(words, ["#e5e7eb" if wanted else "#1f2937"])
                page.close()

    def test_paper(self):
        """Everything is on it, charts that nobody scrolled to as well, whatever the ground on the screen."""
        prints = []
        for dark in (False, True):
            page = browser.Browser(1280, 900, dark)
            self.addCleanup(page.close)
            page.open(self.pages["suite"])
            self.assertLess(page.run("document.querySelectorAll('.chart svg.marks').length"),
                            page.run("document.querySelectorAll('.chart').length"))
            data = page.pdf()
            self.assertTrue(data.startswith(b"%PDF"))
            self.assertEqual(page.run("document.querySelectorAll('.chart svg.marks').length"),
                             page.run("document.querySelectorAll('.chart').length"))
            self.assertEqual(page.run("document.querySelectorAll('details.launch[open]').length"), 0, "open as before")
            self.assertEqual(page.errors, [])
            page.close()
            fills = []
            for stream in re.findall(rb"stream\r?\n(.*?)endstream", data, re.S):
                try:
                    fills += re.findall(rb"([\d.]+ [\d.]+ [\d.]+) rg", zlib.decompress(stream))
                except zlib.error:  # a font or a picture
                    continue
            self.assertTrue(fills)
            prints.append(sorted(fills))
        self.assertEqual(prints[0], prints[1])
        self.assertNotIn(b".0784 .0941 .1216", prints[0], "the dark ground")

    def test_paper_hides_nothing_that_matters(self):
        page = self.start("suite", *SIZES[0])
        page.call("Emulation.setEmulatedMedia", media="print")
        hidden = page.run("[...document.querySelectorAll('main *')].filter((e) => !e.closest('.chart, .narrow-only') && "
                          "getComputedStyle(e).display === 'none').map((e) => e.tagName + '.' + e.className)")
        self.assertEqual(sorted(set(hidden)), ["OUTPUT."])
        cut = page.run("[...document.querySelectorAll('.scroll')].filter((e) => e.scrollHeight > e.clientHeight + 1).length")
        self.assertEqual(cut, 0, "tables that a scroll bar would cut off")
        page.call("Emulation.setDeviceMetricsOverride", width=718, height=1000, deviceScaleFactor=1, mobile=False)  # A4 less its margins
        wide = page.run("[...document.querySelectorAll('main table')].filter((t) => t.getBoundingClientRect().right > innerWidth + 1)"
                        ".map((t) => t.caption.textContent)")
        self.assertEqual(wide, [], "tables wider than paper")


if __name__ == "__main__":
    unittest.main()
