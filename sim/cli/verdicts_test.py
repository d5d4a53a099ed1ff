#!/usr/bin/env python3
"""What verdicts say of launches of many kinds: causes add up, and what was named wrongly once is named rightly.

  verdicts_test.py FOREWARP [--long]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
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


def less_detail():
    """Where seconds do not reach for simulations like the launch's, those in less detail find the same fault and gain."""
    def first(case, budget):
        accounting = predict("faults_01_memory", case, "h200-sxm", "--budget", budget)[0]["accounting"]
        return accounting["causes"][0], "each in a part of its seconds" in accounting["method"]

    for case in ("fault_store_pieces", "fault_column_store"):
        whole, in_part = first(case, "30")
        assert not in_part, case
        part, in_part = first(case, "3")
        assert in_part and part["cause"] == whole["cause"] == "uncoalesced", (whole, part)
        assert abs(part["gain_cycles"] / whole["gain_cycles"] - 1) < 0.1, (whole, part)


# Of each rule a launch made to trigger it, which must be among its first three causes or save a tenth of the time, and one made
# not to, of which it says nothing.
def memory(case):
    return "faults_01_memory", case, "h200-sxm"


def execution(case):
    return "faults_02_execution", case, "h200-sxm"


def limits(case, *options, gpu="h200-sxm"):
    return "faults_03_limits", case, gpu, *options


SMALL_L2 = "--set", "l2.bytes=3932160"
RULES = {
    "launch": (execution("fault_short_launch"), memory("fault_one_counter")),
    "tail": (execution("fault_long_block"), execution("mended_long_block")),
    "uncoalesced": (memory("fault_one_field"), memory("mended_one_field")),
    "bank_conflicts": (memory("fault_shared_counters"), memory("mended_shared_counters")),
    "atomics": (memory("fault_few_bins"), memory("mended_few_bins")),
    "local_memory": (memory("fault_indexed_array"), memory("mended_indexed_array")),
    "divergence": (execution("fault_one_lane"), execution("mended_one_lane")),
    "instruction_fetch": (execution("fault_long_code"), execution("fault_long_block")),
    "synchronisation": (execution("fault_fence_a_turn"), execution("mended_fence_a_turn")),
    "l2_capacity": (limits("again_all", *SMALL_L2), limits("again_part", *SMALL_L2)),
    "registers": (limits("many_registers"), limits("few_registers")),
    "shared_memory_size": (limits("much_shared"), limits("few_registers")),
    "block_slots": (limits("small_blocks"), limits("few_registers")),
    "latency": (execution("fault_chase"), limits("logic")),
    "pipe_alu": (limits("logic"), limits("floats_of_words")),
    "pipe_fma": (limits("integer_products"), limits("logic")),
    "pipe_fp16": (limits("halves", gpu="a100-sxm4-80gb"), limits("floats_of_words", gpu="a100-sxm4-80gb")),
    "pipe_fp64": (execution("brief_doubles"), limits("floats_of_words")),
    "pipe_xu": (execution("brief_special"), limits("floats_of_words")),
    "pipe_tensor": (limits("products"), limits("floats_of_words")),
    "pipe_other": (limits("constants_by_index"), limits("floats_of_words")),
    "l1": (memory("brief_table_words"), limits("floats_of_words")),
    "shared_memory": (memory("brief_shared_words"), limits("floats_of_words")),
    "l2": (memory("mended_store_pieces"), limits("floats_of_words")),
    "hbm": (memory("mended_column_load"), limits("floats_of_words")),
    "issue": (limits("floats_of_words"), memory("fault_few_bins")),
}


def rules_known():
    """The rules of the program, as its source lists them."""
    text = (ROOT / "sim/report/causes.h").read_text()
    return re.findall(r'^  X\(\w+, "(\w+)"', text, re.MULTILINE)


def rules():
    """Each speaks where it should, with all that it owes, and is silent where it should not."""
    def launch(of):
        stem, case, gpu, *options = of
        return predict(stem, case, gpu, "--precision", "100", *options)[0]

    wanted = list(dict.fromkeys(of for pair in RULES.values() for of in pair))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        launches = dict(zip(wanted, pool.map(launch, wanted)))
    wrong = []
    for rule, (trigger, silent) in RULES.items():
        said, quiet = (launches[of]["findings"] for of in (trigger, silent))
        found = [f for f in said if f["cause"] == rule]
        first = [c["cause"] for c in launches[trigger]["accounting"]["causes"][:3]]
        if len(found) != 1 or (rule not in first and found[0]["saved_pct"] < 10):
            wrong.append(f"{rule} is not what {trigger[1]} is about: {[(f['cause'], f['saved_pct']) for f in said]}")
        elif not all(found[0][key] for key in ("what", "why", "advice", "section")):
            wrong.append(f"{rule} says too little: {found[0]}")
        if any(f["cause"] == rule for f in quiet):
            wrong.append(f"{rule} is found in {silent[1]}: {[(f['cause'], f['saved_pct']) for f in quiet]}")
    assert not wrong, "\n".join(wrong)


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
        assert list(RULES) == rules_known(), f"each rule needs a pair of kernels: {set(rules_known()) ^ set(RULES)}"
        causes_add_up()
        less_detail()
        endless()
    print("verdicts: ok")


main()
