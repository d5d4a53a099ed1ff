"""What the gallery's manifest sees."""
import contextlib
import io
import os
import shutil
import sys
import tempfile
import unittest
from unittest import mock

import support

sys.path.insert(0, os.path.join(support.PLOTS, "gallery"))
import build  # noqa: E402


class Manifest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        plots = os.path.join(folder, "plots")
        gallery = os.path.join(plots, "gallery")
        os.makedirs(gallery)
        self.source, self.picture, self.page = (os.path.join(folder, "plots", *path) for path in
                                                (("drawing.py",), ("gallery", "one.svg"), ("README.md",)))
        for path in (self.source, self.picture, self.page):
            self.write(path, "as it was")
        manifest = os.path.join(gallery, "manifest.yaml")
        for name, value in (("ROOT", folder), ("PLOTS", plots), ("HERE", gallery), ("MANIFEST", manifest), ("PAGES", [self.page])):
            patch = mock.patch.object(build, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.write(manifest, build.manifest())

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def check(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            return build.check_hashes(), printed.getvalue()

    def test_nothing_has_changed(self):
        self.assertEqual(self.check()[0], 0)

    def test_a_picture_is_another(self):
        self.write(self.picture, "by hand")
        self.assertEqual(self.check()[0], 1)
        self.assertIn("stale: plots/gallery/one.svg", self.check()[1])

    def test_a_picture_more_and_one_less(self):
        self.write(self.picture.replace("one", "two"), "as it was")
        os.remove(self.picture)
        for name in ("one", "two"):
            self.assertIn(f"stale: plots/gallery/{name}.svg", self.check()[1])

    def test_a_page_is_another(self):
        self.write(self.page, "by hand")
        self.assertIn("stale: plots/README.md", self.check()[1])

    def test_what_they_are_made_from_has_changed(self):
        self.write(self.source, "as it is")
        self.assertIsNone(self.check()[0])
        self.write(self.source, "as it was")
        self.write(self.source.replace("drawing", "more"), "")
        self.assertIsNone(self.check()[0])

    def test_there_is_no_manifest_yet(self):
        os.remove(build.MANIFEST)
        self.assertIsNone(self.check()[0])


class Sources(unittest.TestCase):
    def test_every_file_that_a_command_names_is_one(self):
        commands = [*build.RESULTS.values(), *(picture.words() for picture in build.PICTURES)]
        named = {path for words in commands for word in words if os.path.isfile(path := os.path.join(build.ROOT, word))}
        self.assertGreater(len(named), 20)
        self.assertEqual(named - set(build._sources()), set())


if __name__ == "__main__":
    unittest.main()
