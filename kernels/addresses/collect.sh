#!/usr/bin/env bash
# Records the addresses of the cases in cases.txt on a machine with a GPU, CUDA's compiler and compute-sanitizer:
#   collect.sh FOREWARP_RUN TRACES OUT       OUT/CASE.xz, to be kept in recordings/
set -euo pipefail
runner=$(realpath "$1") traces=$(realpath "$2") out=$(realpath -m "$3")
here=$(dirname "$(realpath "$0")")
sanitizer=${SANITIZER:-/usr/local/cuda/compute-sanitizer}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -std=c++17 -arch=sm_90 -fatbin --keep-device-functions -Xptxas --compile-as-tools-patch -I "$sanitizer/include" \
  -o "$work/record.fatbin" "$here/record.cu"
g++ -std=c++20 -O2 -shared -fPIC -I "$sanitizer/include" -I /usr/local/cuda/include -o "$work/librecorder.so" "$here/recorder.cpp" \
  -L "$sanitizer" -lsanitizer-public -Wl,-rpath,"$sanitizer"
grep -v '^#' "$here/cases.txt" | while read -r stem case; do
  CUDA_MODULE_LOADING=EAGER CUDA_INJECTION64_PATH=$work/librecorder.so FOREWARP_RECORD_PATCH=$work/record.fatbin \
    FOREWARP_RECORD_FILE=$work/accesses.csv "$runner" "$traces/sm_90/$stem.cubin" --launch "$traces/$stem.yaml" --case "$case" \
    --repeat 0 </dev/null
  python3 "$here/addresses.py" pack "$work/accesses.csv" "$out/$case.xz"
done
