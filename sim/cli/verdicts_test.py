#!/usr/bin/env python3
"""What verdicts say of launches of many kinds: causes add up, and what was named wrongly once is named rightly.

  verdicts_test.py FOREWARP [--long]
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOREWARP = sys.argv[1]

# Stem, case, GPU: each kind of work, alone and in a row, short and long, whole waves and not, on three GPUs.
SPREAD = [("matmul_02_coalesced", "sgemm_coalesced_check_64", "h200-sxm"),
          ("matmul_06_vectorized", "sgemm_vectorized_1024", "a100-sxm4-40gb"),
          ("attention_03_flash", "flash_attention_check_64", "h100-sxm5"),
          ("copy_05_transpose", "transpose_unpadded_1024", "h200-sxm"),
          ("reduce_03_sum_atomic", "sum_atomic_threads_1mi", "h200-sxm"),
          ("faults_02_execution", "fault_short_launch", "h200-sxm"),
          ("faults_02_execution", "fault_one_block_more", "h200-sxm"),
          ("faults_02_execution", "fault_two_ways", "a100-sxm4-80gb"),
          ("faults_01_memory", "fault_spilled", "h100-sxm5"),
          ("faults_01_memory", "fault_scatter", "h200-sxm")]


def predict(stem, case, gpu, *options):
    arch = "sm_80" if gpu.startswith("a100") else "sm_90"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        subprocess.run([FOREWARP, "predict", ROOT / f"traces/{arch}/{stem}.cubin", "--launch", ROOT / f"traces/{stem}.yaml", "--case", case,
                        "--gpu", gpu, "--threads", "1", "--no-cache", *options, "--json", out], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())["cases"]


def causes_add_up():
    seen = {False: 0, True: 0}
    for stem, case, gpu in SPREAD:
        for budget in ("0.2", "2"):  # most sizes from counters alone, or from simulations
            for launch in predict(stem, case, gpu, "--budget", budget):
                accounting, elapsed = launch["accounting"], launch["metrics"]["gpc__cycles_elapsed.max"]
                causes = accounting["causes"]
                where = f"{case} on {gpu} at {budget} s: {[(c['cause'], c['share_pct']) for c in causes]}"
                assert abs(sum(c["cycles"] for c in causes) - elapsed) < 1e-6 * elapsed, where
                assert abs(sum(c["share_pct"] for c in causes) - 100) < 1e-6, where
                assert all(c["cycles"] > 0 for c in causes), where
                assert all(0 <= c.get("gain_cycles", 0) <= elapsed for c in causes), where
                assert causes[0]["cause"] == launch["bottleneck"]["kind"], where
                assert sum(c["cause"] == "issue" for c in causes) <= 1, where
                seen[accounting["simulated"]] += 1
    assert all(seen.values()), f"only one way of finding sizes was tried: {seen}"


def named_rightly():
    """First, or among the first three, where a cause was missed once."""
    def first(stem, case, gpu="h200-sxm", count=1):
        return [c["cause"] for c in predict(stem, case, gpu)[0]["accounting"]["causes"][:count]]

    assert first("faults_02_execution", "fault_short_launch") == ["launch"]  # not idle SMs, nor in the twin, which is none
    assert "launch" not in first("faults_02_execution", "mended_short_launch")
    assert first("faults_02_execution", "fault_one_block_more") == ["tail"]
    assert "tail" not in first("faults_02_execution", "mended_one_block_more", count=3)
    assert "tail" in first("matmul_06_vectorized", "sgemm_vectorized_1793", "a100-sxm4-40gb", 3)
    assert first("reduce_03_sum_atomic", "sum_atomic_threads_1mi") == ["atomics"]
    transposed = predict("copy_05_transpose", "transpose_unpadded_1024", "h200-sxm")[0]["accounting"]["causes"]
    assert transposed[0]["cause"] == "bank_conflicts" and "LDS" in transposed[0]["place"]["sass"], transposed[0]
    stores = predict("faults_01_memory", "fault_column_store", "h200-sxm")[0]["accounting"]["causes"][0]
    assert stores["cause"] == "uncoalesced" and stores["place"]["sass"].startswith("STG"), stores


def rules():
    """Each says of a kernel made to trigger it what is to be saved, and less than half as much of the mended twin."""
    for stem, names in {"faults_01_memory": {"column_store": "uncoalesced", "one_counter": "atomics", "indexed_array": "local_memory"},
                        "faults_02_execution": {"eight_ways": "divergence", "long_code": "instruction_fetch"}}.items():
        for name, cause in names.items():
            saved = {}
            for role in ("fault", "mended"):
                launch = predict(stem, f"{role}_{name}", "h200-sxm")[0]
                found = [f for f in launch["findings"] if f["cause"] == cause]
                assert len(found) <= 1, (name, role)
                assert all(f["what"] and f["why"] and f["advice"] and f["section"] for f in found), found
                saved[role] = sum(f["saved_pct"] for f in found)
            assert saved["mended"] < saved["fault"] / 2, (name, cause, saved)


def endless():
    """Kernels that wait for what nobody sets, or loop for ever, end when the budget is spent, and say where they go round."""
    image = ROOT / "sim/cli/testdata/endless.cubin"
    launches = ROOT / "sim/cli/testdata/endless.yaml"
    for case, warps in (("flag", ["LDG.E.STRONG.SYS", "warp 0", "warp 1"]), ("loop", ["warp 0", "warp 1", "BRA"]), ("half", ["warp 0", "block barrier 0", "warp 2", "LDG.E.STRONG.SYS"])):
        for command in (["predict", "--gpu", "h200-sxm", "--no-cache"], ["emulate", "--dump", "out=/dev/null"]):
            run = subprocess.run([FOREWARP, command[0], image, "--launch", launches, "--case", case, "--budget", "0.1", *command[1:]],
                                 capture_output=True, text=True, timeout=120)
            said = run.stderr
            assert run.returncode == 1, (case, command, said)
            assert "--budget" in said and "endless.cu:" in said, (case, command, said)
            assert all(word in said for word in warps), (case, command, said)


def main():
    if "--long" in sys.argv:
        named_rightly()
        rules()
    else:
        causes_add_up()
        endless()
    print("verdicts: ok")


main()
