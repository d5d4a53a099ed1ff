#!/usr/bin/env python3
"""Builds the gallery: predicts what it draws, draws it, and writes plots/README.md and plots/SKETCHES.md.

  build.py [--forewarp PROGRAM] [--results FOLDER] [--only NAME ...] [--threads N] [--check] [--anew]

--only names pictures; `sketches` is the page of sketches.

Results are kept in build/gallery/ and predicted again when the program is newer than they are; pictures land in
plots/gallery/. A change in the model shows as a change of picture. Run it with the Python that holds vl-convert
(.venv/bin/python), as `./run.sh gallery` does. It needs Liberation Sans, since the widths of words decide where things
stand. --check says which pictures are not those that would be drawn now: manifest.yaml has the hashes of what they were made
from and of what was made, and what is of those hashes needs no drawing. Where something has changed, and with --anew, it
draws all elsewhere and compares.
"""
import argparse
import hashlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PLOTS = os.path.dirname(HERE)
ROOT = os.path.dirname(PLOTS)
sys.path.insert(0, HERE)

import pictures  # noqa: E402
import sketches  # noqa: E402

MANIFEST = os.path.join(HERE, "manifest.yaml")
PAGES = [os.path.join(PLOTS, name) for name in ("README.md", "SKETCHES.md")]
# What decides how they look: the program, what it reads, and what draws (run.sh has the version of the renderer).
MADE_FROM = ["CMakeLists.txt", "run.sh", "sim", "hwmodels", "traces", "validation/profiles", "validation/sequences",
             "validation/speed", "validation/sweep", "docs/examples/scenarios", "plots"]
NOT_OF_IT = (".svg", ".pyc", "_test.cpp", "_test.py")

PICTURES = pictures.PICTURES + sketches.PICTURES
RESULTS = pictures.RESULTS | sketches.RESULTS


def need_font():
    try:
        found = subprocess.run(["fc-match", "--format", "%{family}", "Liberation Sans"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        found = ""
    if "Liberation Sans" not in found:
        sys.exit("build.py: the pictures need the font Liberation Sans, which is not installed: apt install fontconfig fonts-liberation")


class Builder:
    def __init__(self, options):
        self.forewarp, self.folder, self.threads = options.forewarp, options.results, str(options.threads)
        self.root = ROOT
        os.makedirs(self.folder, exist_ok=True)

    def run(self, words, quiet=True):
        done = subprocess.run([self.forewarp, *words], cwd=ROOT, stdout=subprocess.DEVNULL if quiet else None,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, 3):  # 3: a suite outside its tolerance is drawn all the same
            sys.exit(f"build.py: forewarp {' '.join(words)}: exit {done.returncode}\n{done.stderr}")

    def path(self, result):
        return os.path.join(self.folder, result + ".json")

    def fresh(self, path):
        return os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(self.forewarp)

    def launch_files(self):
        """The launch files that exist for the gallery alone."""
        for what in ("nanogpt", "sketches"):
            subprocess.run([sys.executable, os.path.join(HERE, "sequences.py"), what, os.path.join(self.folder, what)], check=True)
        subprocess.run([sys.executable, os.path.join(ROOT, "validation", "sweep", "sweep.py"), "launches", "--sparse", "--out",
                        os.path.join(self.folder, "sweep.yaml")], check=True)

    def predict(self, name):
        path = self.path(name)
        if self.fresh(path):
            return
        print(f"predicting {name}", flush=True)
        words = [word.replace("RESULTS", self.folder) for word in RESULTS[name]]
        self.run(words + ["--threads", self.threads, "--json", path])

    def draw(self, picture, folder=HERE):
        results = picture.results()
        for result in results:
            self.predict(result)
        command = [word.replace("RESULTS", self.folder) for word in picture.words()]
        self.run(command + ["--out", os.path.join(folder, picture.name + ".svg")], quiet=False)


def readme(drawn):
    with open(os.path.join(HERE, "head.md"), encoding="utf-8") as file:
        lines = [file.read().rstrip(), ""]
    scenario = None
    for picture in drawn:
        if picture.scenario != scenario:
            scenario = picture.scenario
            lines += [f"## {scenario}", ""]
        lines += [f"![{picture.alt}](gallery/{picture.name}.svg)", "", picture.text, "", "```sh", *picture.shown(), "```", ""]
    return "\n".join(lines)


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sources():
    found = []
    for top in MADE_FROM:
        top = os.path.join(ROOT, top)
        for folder, _, names in os.walk(top):
            found += [os.path.join(folder, name) for name in names]
        if os.path.isfile(top):
            found.append(top)
    tests = os.path.join(PLOTS, "tests") + os.sep
    return sorted(path for path in found if not path.endswith(NOT_OF_IT) and not path.startswith(tests) and path not in (MANIFEST, *PAGES))


def need_program(forewarp):
    """The manifest vouches for sources: the program has to be of these."""
    built = os.path.getmtime(forewarp)
    for path in _sources():
        if path.endswith((".cpp", ".h", ".def")) and os.path.getmtime(path) > built:
            sys.exit(f"build.py: {os.path.relpath(path, ROOT)} is newer than {forewarp}: build that first")


def manifest():
    """What the manifest says of the files as they are on disk."""
    made = sorted(os.path.join(HERE, name) for name in os.listdir(HERE) if name.endswith(".svg")) + PAGES
    sources = "".join(f"{os.path.relpath(path, ROOT)}: {_sha256(path)}\n" for path in _sources())
    return "\n".join(["# Written by build.py: the hash of what the gallery was made from, and those of what was made.",
                      f"made_from: {hashlib.sha256(sources.encode()).hexdigest()}", "made:",
                      *(f"  {os.path.relpath(path, PLOTS)}: {_sha256(path)}" for path in made)]) + "\n"


def _report(stale, fine):
    for name in stale:
        print(f"stale: {name}")
    print("`./run.sh gallery` draws them anew" if stale else fine)
    return 1 if stale else 0


def check_hashes():
    """What --check says where all was drawn from what is here; None where that has changed."""
    was, now = (text.splitlines() for text in (_read(MANIFEST) or "", manifest()))
    if was[:2] != now[:2]:
        return None
    changed = sorted({line.split(":")[0].strip() for line in set(was) ^ set(now)})
    return _report([f"plots/{name}" for name in changed], f"{len(PICTURES)} pictures were made from what is here")


def _read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def check(builder, chosen, page):
    """How many pictures are not as they would be drawn now, and whether the pages are."""
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        for picture in chosen:
            builder.draw(picture, folder)
            name = picture.name + ".svg"
            if _read(os.path.join(folder, name)) != _read(os.path.join(HERE, name)):
                stale.append("plots/gallery/" + name)
    named = {picture.name + ".svg" for picture in PICTURES}
    stale += [f"plots/gallery/{name} (no picture of this name)" for name in sorted(os.listdir(HERE)) if name.endswith(".svg") and name not in named]
    if _read(os.path.join(PLOTS, "README.md")) != readme(pictures.PICTURES):
        stale.append("plots/README.md")
    if page and _read(os.path.join(PLOTS, "SKETCHES.md")) != page:
        stale.append("plots/SKETCHES.md")
    return _report(stale, f"{len(chosen)} pictures are as they should be")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forewarp", default=os.path.join(ROOT, "build", "release", "forewarp"))
    parser.add_argument("--results", default=os.path.join(ROOT, "build", "gallery"))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--anew", action="store_true")
    options = parser.parse_args()
    if options.check and not options.only and not options.anew and (known := check_hashes()) is not None:
        return known
    need_font()
    need_program(options.forewarp)
    builder = Builder(options)
    builder.launch_files()
    chosen = [picture for picture in PICTURES if not options.only or picture.name in options.only]
    page = sketches.Page(builder).text() if not options.only or "sketches" in options.only else None
    if options.check:
        return check(builder, chosen, page)
    for picture in chosen:
        builder.draw(picture)
    with open(os.path.join(PLOTS, "README.md"), "w", encoding="utf-8") as file:
        file.write(readme(pictures.PICTURES))
    if page:
        with open(os.path.join(PLOTS, "SKETCHES.md"), "w", encoding="utf-8") as file:
            file.write(page)
    if not options.only:
        with open(MANIFEST, "w", encoding="utf-8") as file:
            file.write(manifest())
    return 0


if __name__ == "__main__":
    sys.exit(main())
