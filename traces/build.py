#!/usr/bin/env python3
"""Make, or check, what forewarp replays: a cubin and its disassembly per kernel source and GPU architecture.

  build.py           compile kernels/*/*.cu and kernels/triton/*.py, disassemble, write the launch files and manifest.yaml
  build.py --check   say whether the committed files belong to the sources as they are; exit 1 where one does not
  build.py --check --hashes
                     ... by the manifest alone, in a second: nothing is compiled

Making needs nvcc on the PATH, and nvdisasm: on the PATH in the pinned version, or else from its wheel, which is put into
.venv, as Triton's is. Checking needs none of them: without nvcc of the manifest's version, or without Triton, it compares
hashes, with it the code too.
"""
import argparse
import difflib
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import launches

TRACES = Path(__file__).resolve().parent
ROOT = TRACES.parent
MANIFEST = TRACES / "manifest.yaml"
ARCHITECTURES = ["sm_80", "sm_90"]
OPTIMISATION = "-O3"
NVCC_FLAGS = [OPTIMISATION, "--cubin"]
NVDISASM_VERSION = "V13.2.51"
NVDISASM_WHEEL = "nvidia-cuda-nvdisasm==13.2.51"
TRITON_VERSION = "3.9.0"


def sources():
    """The kernel sources by stem: kernels/matmul/02_coalesced.cu is matmul_02_coalesced. Device code without a kernel is left out.
    Of Triton each instance is a stem of its own."""
    in_cuda = {f"{path.parent.name}_{path.stem}": path for path in sorted((ROOT / "kernels").glob("*/*.cu"))
               if "__global__" in path.read_text()}
    return in_cuda | {f"triton_{path.stem[:2]}_{name}": path for path in sorted((ROOT / "kernels/triton").glob("[0-9]*.py"))
                      for name in re.findall(r'^    instance\("(\w+)"', path.read_text(), re.MULTILINE)}


def in_triton(source):
    return source.suffix == ".py"


def included(path):
    """The project's own headers that a source includes, directly or not."""
    if in_triton(path):
        return {path.with_name("instances.py")}
    found = set()
    for name in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE):
        header = (path.parent / name).resolve()
        found |= {header} | included(header)
    return found


def architectures(source):
    """Those that a source is for: what only sm_90a has is in kernels/common/hopper.cuh; Triton compiles for one at a time."""
    return [arch for arch in ARCHITECTURES if arch == "sm_90" or not needs_hopper(source)]


def needs_hopper(source):
    return in_triton(source) or ROOT / "kernels/common/hopper.cuh" in included(source)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def text_sections(cubin):
    """The code of a cubin (ELF64): kernel name -> bytes of its .text section."""
    data = cubin.read_bytes()
    table, = struct.unpack_from("<Q", data, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    # Of each section header: name, type, flags, address, offset, size.
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * entry_size) for i in range(count)]
    names = headers[names_index][4]
    code = {}
    for name, _, _, _, offset, size in headers:
        title = data[names + name:data.index(b"\0", names + name)].decode()
        if title.startswith(".text."):
            code[title.removeprefix(".text.")] = data[offset:offset + size]
    return code


def version_of(tool):
    """The exact version of an installed CUDA tool, None where it is not installed."""
    if not tool or not shutil.which(tool):
        return None
    return re.search(r"V\d+\.\d+\.\d+", subprocess.run([tool, "--version"], capture_output=True, text=True).stdout)[0]


def installed_nvdisasm():
    in_venv = sorted((ROOT / ".venv").glob("lib/python3*/site-packages/nvidia/cu*/bin/nvdisasm"))
    return next((tool for tool in ["nvdisasm", *map(str, in_venv)] if version_of(tool) == NVDISASM_VERSION), None)


def nvdisasm():
    """nvdisasm in the pinned version; installs it into .venv when it is not there."""
    if not installed_nvdisasm():
        install(NVDISASM_WHEEL)
    return installed_nvdisasm() or sys.exit(f"build.py: nvdisasm {NVDISASM_VERSION} could not be installed")


def install(wheel):
    venv = ROOT / ".venv"
    if not venv.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "python", "-m", "pip", "install", "--quiet", wheel], check=True)


def has_triton():
    return any((ROOT / ".venv").glob(f"lib/python3*/site-packages/triton-{TRITON_VERSION}.dist-info"))


def compile_cubin(stem, source, architecture, out):
    if in_triton(source):
        subprocess.run([ROOT / ".venv/bin/python", source.with_name("instances.py"), stem, out], check=True, stdout=subprocess.DEVNULL)
        return
    target = f"-arch={architecture}{'a' if needs_hopper(source) else ''}"
    if source.parent.name == "faults":  # reports of these are checked to the line
        compile_with_lines(source, target, out)
    else:
        nvcc(target, *NVCC_FLAGS, "-o", out, source.relative_to(ROOT))


def nvcc(*arguments):
    subprocess.run(["nvcc", *arguments], cwd=ROOT, check=True)


def compile_with_lines(source, target, out):
    """With the lines of its source. nvcc names source files by where they lie on this machine, also where it is given relative
    names, so the PTX in between is made to name them as the repository does: the image is the same wherever it is compiled."""
    def portable(match):
        path = Path(match[2]).resolve()
        return match[1] + str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path("cuda/include") / path.name) + match[3]

    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder) / f"{source.stem}.ptx"
        nvcc(target, OPTIMISATION, "--ptx", "-lineinfo", "-o", ptx, source.relative_to(ROOT))
        ptx.write_text(re.sub(r'^(\s*\.file\s+\d+ ")(.+?)(")', portable, ptx.read_text(), flags=re.MULTILINE))
        nvcc(target, *NVCC_FLAGS, "-lineinfo", "-o", out, ptx)


def machine_paths(cubin):
    """Whole paths in an image, which would be those of the machine that compiled it."""
    return sorted({name.decode() for name in re.findall(rb"(?<![\w.+-])(/[\w.+-]+/[\w./+-]+)\0", cubin.read_bytes())})


def disassemble(tool, cubin):
    return subprocess.run([tool, "-json", cubin], capture_output=True, check=True).stdout


def for_each_image(work, jobs):
    """Calls work(stem, source, architecture) for every cubin there is to be."""
    tasks = [(stem, source, arch) for stem, source in sources().items() for arch in architectures(source)]
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda task: work(*task), tasks))


def image_paths(stem, architecture):
    cubin = TRACES / architecture / f"{stem}.cubin"
    return cubin, cubin.with_name(cubin.name + ".json")


def manifest(nvcc_version, nvdisasm_version):
    """What the manifest says of the files as they are on disk."""
    lines = ["# Written by build.py: which sources and tools the files here were made from.",
             f"nvcc: {nvcc_version}", f"nvdisasm: {nvdisasm_version}", f"triton: {TRITON_VERSION}", f"flags: [{', '.join(NVCC_FLAGS)}]", "stems:"]
    for stem, source in sources().items():
        lines += [f"  {stem}:", f"    source: {source.relative_to(ROOT)}", f"    sha256: {sha256(source)}"]
        headers = sorted(included(source))
        if headers:
            lines += ["    includes:", *(f"      {path.relative_to(ROOT)}: {sha256(path)}" for path in headers)]
        cubin = image_paths(stem, ARCHITECTURES[-1])[0]
        lines += [f"    kernels: [{', '.join(sorted(text_sections(cubin)) if cubin.exists() else [])}]"]
        for architecture in architectures(source):
            hashes = [sha256(path) if path.exists() else "missing" for path in image_paths(stem, architecture)]
            lines += [f"    {architecture}:", f"      cubin: {hashes[0]}", f"      json: {hashes[1]}"]
    return "\n".join(lines) + "\n"


def build(jobs):
    compiler, tool = version_of("nvcc"), nvdisasm()
    if not compiler:
        sys.exit("build.py: nvcc is not on the PATH")
    if not has_triton():
        install(f"triton=={TRITON_VERSION}")
    for architecture in ARCHITECTURES:
        (TRACES / architecture).mkdir(exist_ok=True)

    def write(path, data):
        """Beside, then renamed: a reader never sees half a file."""
        beside = path.with_name(path.name + ".new")
        beside.write_bytes(data)
        os.replace(beside, path)

    def image(stem, source, architecture):
        cubin, listing = image_paths(stem, architecture)
        beside = cubin.with_suffix(".new.cubin")
        compile_cubin(stem, source, architecture, beside)
        os.replace(beside, cubin)
        write(listing, disassemble(tool, cubin))

    for_each_image(image, jobs)
    for stem, text in launches.files().items():
        write(TRACES / f"{stem}.yaml", text.encode())
    write(MANIFEST, manifest(compiler, NVDISASM_VERSION).encode())


def check(jobs, by_hashes):
    """Every way in which the committed files do not belong to the sources."""
    committed = MANIFEST.read_text()
    made_by = {tool: re.search(rf"^{tool}: (\S+)", committed, re.MULTILINE)[1] for tool in ("nvcc", "nvdisasm")}
    difference = difflib.unified_diff(committed.splitlines(), manifest(**{f"{tool}_version": v for tool, v in made_by.items()})
                                      .splitlines(), "manifest.yaml", "files as they are", lineterm="", n=2)
    problems = list(difference)
    expected = {TRACES / f"{stem}.yaml" for stem in launches.files()} | {MANIFEST}
    expected |= {path for stem, source in sources().items() for arch in architectures(source) for path in image_paths(stem, arch)}
    problems += [f"{path.relative_to(ROOT)}: names {name}, which is of the machine that compiled it"
                 for folder in ("traces", "sim") for path in sorted((ROOT / folder).rglob("*.cubin")) for name in machine_paths(path)]
    found = {*TRACES.glob("*.yaml"), *(path for arch in ARCHITECTURES for path in (TRACES / arch).glob("*"))}
    problems += [f"{path.relative_to(TRACES)}: missing" for path in sorted(expected - found)]
    problems += [f"{path.relative_to(TRACES)}: of no source" for path in sorted(found - expected)]
    for stem, text in launches.files().items():
        path = TRACES / f"{stem}.yaml"
        if path.exists() and path.read_text() != text:
            problems.append(f"{path.name}: not what launches.py writes")

    if by_hashes:
        return problems
    if version_of("nvcc") != made_by["nvcc"]:
        print(f"build.py: no nvcc {made_by['nvcc']}: hashes compared, code not", file=sys.stderr)
        return problems
    tool = installed_nvdisasm()
    if not tool:
        print(f"build.py: no nvdisasm {NVDISASM_VERSION}: code compared, disassembly only by hash", file=sys.stderr)

    def compare(stem, source, architecture):
        cubin, listing = image_paths(stem, architecture)
        if not cubin.exists() or not listing.exists() or in_triton(source) and not has_triton():
            return []
        with tempfile.TemporaryDirectory() as folder:
            rebuilt = Path(folder) / cubin.name
            compile_cubin(stem, source, architecture, rebuilt)
            old, new = text_sections(cubin), text_sections(rebuilt)
        wrong = [f"{architecture}/{cubin.name}: code of {name} is not what its source compiles to"
                 for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
        if tool and disassemble(tool, cubin) != listing.read_bytes():
            wrong.append(f"{architecture}/{listing.name}: not the disassembly of its cubin")
        return wrong

    return problems + sum(for_each_image(compare, jobs), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--hashes", action="store_true", help="with --check: compile nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilations at a time (default: one a core)")
    options = parser.parse_args()
    if not options.check:
        build(options.jobs)
        return
    problems = check(options.jobs, options.hashes)
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        sys.exit("build.py: traces/ does not belong to kernels/ as it is; run traces/build.py")
    print(f"traces: {len(sources())} sources, {sum(len(architectures(source)) for source in sources().values())} images, all belong together")


if __name__ == "__main__":
    main()
