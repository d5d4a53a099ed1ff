#!/usr/bin/env python3
"""Cuts small result files for the tests from real ones; what they say stays as it was when they were cut.

  make_results.py FOREWARP     writes plots/tests/results/*.json
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def _small(case):
    """The case with fewer rows of what is long."""
    for row in case.get("instructions", []):
        row["sass"] = row["sass"][:60]
    if "instructions" in case:
        case["instructions"] = case["instructions"][:30]
    stream = case.get("warp_stream")
    if stream:
        for key in ("pc", "count", "active_lanes"):
            stream[key] = stream[key][:60]
    for table in case.get("occupancy", {}).get("choices", {}).values():
        for key in table:
            table[key] = table[key][::4]
    for key in ("memory", "access_examples", "hot_spots"):
        if key in case:
            case[key] = case[key][:6]
    case["metrics"] = {k: round(v, 4) for k, v in case["metrics"].items()}
    return case


def main(forewarp):
    made = {
        "launch": ["predict", "traces/sm_90/divergence_01_branch_ways.cubin", "--launch", "traces/divergence_01_branch_ways.yaml",
                   "--gpu", "h200-sxm", "--case", "divergence_by_lane_2_check_1000", "--case", "divergence_by_warp_2_check_1000"],
        "sequence": ["predict", "traces/sm_90/elementwise_02_elu.cubin", "--launch", "traces/elementwise_02_elu.yaml", "--gpu",
                     "h200-sxm", "--case", "elu_unfused_check_1000", "--case", "elu_fused_check_1000"],
        "product": ["predict", "traces/sm_90/matmul_07_warp_tiled_double_buffered.cubin", "--launch",
                    "traces/matmul_07_warp_tiled_double_buffered.yaml", "--gpu", "h200-sxm", "--case", "sgemm_warp_tiled_check_100",
                    "--case", "sgemm_warp_tiled_check_129"],
        "warps": ["predict", "traces/sm_90/matmul_23_warp_specialised.cubin", "--launch", "traces/matmul_23_warp_specialised.yaml", "--gpu",
                  "h200-sxm", "--case", "specialised_bf16_check_129x72x416", "--warps", "0", "--warps-cycles", "8000"],
        "cluster": ["predict", "traces/sm_90/matmul_24_cluster_multicast.cubin", "--launch", "traces/matmul_24_cluster_multicast.yaml", "--gpu",
                    "h200-sxm", "--case", "multicast_bf16_check_136x264x104", "--warps", "1", "--warps-cycles", "5000"],
        "suite": ["validate", "--suites", "SUITES", "--suite", "small"],
    }
    with tempfile.TemporaryDirectory() as folder:
        suites = os.path.join(folder, "suites.yaml")
        with open(suites, "w", encoding="utf-8") as file:
            file.write("small:\n  title: small\n  gpu: h200-sxm\n  cache: cold\n  traces:\n"
                       "    - {stem: matmul_03_shared_tiled, cases: [sgemm_shared_tiled_512]}\n"
                       "    - {stem: matmul_07_warp_tiled_double_buffered, cases: [sgemm_warp_tiled_512]}\n"
                       "    - {stem: elementwise_04_relu, cases: [relu_f32_1mi]}\n"
                       "  tolerance: {mean_pct: 90, p90_pct: 90, worst_pct: 90}\n")
        for name, words in made.items():
            path = os.path.join(folder, name + ".json")
            subprocess.run([forewarp, *(suites if w == "SUITES" else w for w in words), "--threads", "1", "--json", path], cwd=ROOT,
                           stdout=subprocess.DEVNULL, check=False)
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            document["cases"] = [_small(case) for case in document["cases"]]
            with open(os.path.join(HERE, "results", name + ".json"), "w", encoding="utf-8") as file:
                json.dump(document, file, separators=(",", ":"))
                file.write("\n")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
