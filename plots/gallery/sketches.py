"""The page of sketches: what each scenario of docs/examples/scenarios answers, beside what compiled kernels give."""
import csv
import json
import math
import os

from pictures import Picture

_FOLDER = "docs/examples/scenarios"
_PROFILES = "validation/profiles/h200-sxm"

CYCLES = "gpc__cycles_elapsed.max"
_HBM = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_ASKED = ("smsp__sass_data_bytes_mem_global_op_ld.sum",)
_SECTORS = ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",)
_EXECUTED = ("smsp__inst_executed.sum",)
_PRODUCTS = ("sm__inst_executed_pipe_tensor.sum",)


def _sketch(stem, *cases, gpu="h200-sxm"):
    return ["sketch", f"{_FOLDER}/{stem}.yaml", "--gpu", gpu, *(word for case in cases for word in ("--case", case))]


def _kernel(stem, *cases, gpu="h200-sxm", launches=None):
    """A compiled kernel, by the launches that the project has of it or by `launches`."""
    sm = "sm_80" if gpu.startswith("a100") else "sm_90"
    return ["predict", f"traces/{sm}/{stem.split('.')[0]}.cubin", "--launch", launches or f"traces/{stem}.yaml", "--gpu", gpu,
            *(word for case in cases for word in ("--case", case)), "--causes", "counted"]


_TILES = "RESULTS/sketches/matmul_19_tiles.yaml"
_W, _B = "tiles_f16_256x128x32_64x64_3_", "tiles_bf16_128x128x32_64x64_4_"

# Name of a result -> what `forewarp` is given to make it, as in pictures.py, whose kernels are not predicted twice.
RESULTS = {
    "kernels_waves": _kernel("matmul_19_tiles", _W + "2048x2048x1792", _W + "2048x2056x1792", launches=_TILES),
    "kernels_waves_a100": _kernel("matmul_19_tiles", _W + "1792", _W + "1800", gpu="a100-sxm4-40gb", launches=_TILES),
    "kernels_copy": _kernel("copy_03_offset", "copy_offset_64mi_offset_0", "copy_offset_64mi_offset_1"),
    "kernels_bf16": _kernel("matmul_19_tiles", *(_B + shape for shape in ("4096x50264x768", "4096x50304x768", "4096x4096x1024")),
                            launches=_TILES),
    "kernels_f32": _kernel("matmul_06_vectorized", "sgemm_vectorized_256x256", "sgemm_vectorized_256x260", "sgemm_vectorized_4096"),
    "kernels_flash": _kernel("attention_05_flash2", "flash2_f16_64_causal_2048", "flash2_f16_128_causal_2048"),
    "kernels_flash_groups": _kernel("attention_08_flash3", "flash3_f16_64_2048", "flash3_f16_128_causal_2048"),
    "kernels_hopper": ["validate", "--suites", "plots/gallery/suites.yaml", "--suite", "sketch_gallery"],
    "sketch_waves_a100": _sketch("s02_waves", "one_wave", "one_tile_more", gpu="a100-sxm4-40gb"),
    "sketch_waves_h200": _sketch("s02_waves", "full_on_h200", "beyond_on_h200"),
    "sketch_misaligned": _sketch("s05_misaligned"),
    "sketch_tile_quantization": _sketch("s06_tile_quantization"),
    "sketch_tiling": _sketch("s07_tiling"),
    "sketch_fusion": _sketch("s08_fusion"),
    "sketch_recomputation": _sketch("s09_recomputation"),
    "sketch_precision": _sketch("s10_precision"),
    "sketch_precision_hopper": _sketch("s10_hopper"),
    # Those left out have 19 launches more.
    "sketch_attention": _sketch("s13_attention", "unfused", "unfused_f32", "flash", "flash_causal"),
    "sketch_attention_hopper": _sketch("s13_hopper"),
    "sketch_copies": _sketch("s17_copies"),
    "sketch_hopper": _sketch("s17_hopper"),
    "sketch_sparsity": _sketch("s18_sparsity"),
}


class Scenario:
    """results: of its sketches. kernels: sketch -> (result, case) of the kernel that is built as it describes. lessons: pairs of
    sketches and the quantities in which they are compared; columns: quantities beside the cycles."""

    def __init__(self, title, question, stem, results, kernels, lessons, columns=(), pictures=()):
        self.title, self.question, self.stem, self.results, self.kernels = title, question, stem, results, kernels
        self.lessons, self.columns, self.pictures = lessons, columns, pictures


class Quantity:
    """What is read from the launches of a case: a sum of metrics, of which `unit` make one."""

    def __init__(self, name, metrics, unit=1, digits=0):
        self.name, self.metrics, self.unit, self.digits = name, metrics, unit, digits

    def of(self, launches):
        return sum(one["metrics"][metric] for one in launches for metric in self.metrics)

    def text(self, value):
        return f"{value / self.unit:,.{self.digits}f}"


TIME = Quantity("cycles", (CYCLES,), 1000)
HBM = Quantity("HBM traffic", _HBM, 1e6)
ASKED = Quantity("bytes asked for by loads", _ASKED, 1e6)
SECTORS = Quantity("sectors", _SECTORS, 1e6, 1)
EXECUTED = Quantity("instructions", _EXECUTED, 1e6, 2)
PRODUCTS = Quantity("tensor instructions", _PRODUCTS, 1e6, 1)
BLOCKS = Quantity("blocks", ("launch__grid_size",))


def _in(result, **kernels):
    """Sketches and the cases of their kernels, all in one result."""
    return {sketch: (result, case) for sketch, case in kernels.items()}


def _cases(*names):
    return "\n".join(f"--case\n{name}" for name in names)


def _picture(name, kind, words, alt):
    return Picture("", name, kind, words, "", alt)


SCENARIOS = [
    Scenario("S2 Wave quantization", "How much does the tile cost that does not fit into the wave?", "s02_waves",
             ["sketch_waves_a100", "sketch_waves_h200"],
             _in("kernels_waves_a100", one_wave=_W + "1792", one_tile_more=_W + "1800") |
             _in("kernels_waves", full_on_h200=_W + "2048x2048x1792", beyond_on_h200=_W + "2048x2056x1792"),
             [("one_tile_more", "one_wave", [TIME, BLOCKS]), ("beyond_on_h200", "full_on_h200", [TIME, BLOCKS])], [BLOCKS],
             [_picture("sketch_s02_waves", "waves", "@sketch_waves_a100", "Blocks of two sketched products on the SMs of an A100 over time")]),
    Scenario("S5 Misaligned tiles", "What does it cost that rows do not begin where sectors do?", "s05_misaligned",
             ["sketch_misaligned"],
             _in("kernels_copy", begins_aligned="copy_offset_64mi_offset_0", begins_late="copy_offset_64mi_offset_1") |
             _in("kernels_bf16", vocabulary_50264=_B + "4096x50264x768", vocabulary_50304=_B + "4096x50304x768"),
             [("begins_late", "begins_aligned", [TIME, SECTORS]), ("shifted", "padded", [TIME, SECTORS]),
              ("vocabulary_50264", "vocabulary_50304", [TIME])], [SECTORS],
             [_picture("sketch_s05_coalescing", "coalescing", "@sketch_misaligned\n--case\nbegins_aligned\n--case\nbegins_late",
                       "Sectors that a warp of an aligned and of a late copy touches")]),
    Scenario("S6 Tile quantization", "What do four columns more cost, where they make half as many tiles again?", "s06_tile_quantization",
             ["sketch_tile_quantization"],
             _in("kernels_f32", four_tiles="sgemm_vectorized_256x256", six_tiles="sgemm_vectorized_256x260"),
             [("six_tiles", "four_tiles", [TIME, BLOCKS])], [BLOCKS]),
    Scenario("S7 Tiling", "How often is each input read with tiles of 32, 64 and 128?", "s07_tiling", ["sketch_tiling"],
             _in("measured", tile_128="sgemm_vectorized_1024"),
             [("tile_32", "tile_64", [ASKED, TIME]), ("tile_64", "tile_128", [ASKED, TIME])], [ASKED],
             [_picture("sketch_s07_tiling", "traffic", "@sketch_tiling\n--level\nasked by loads\n--level\nL2" + "".join(
                 f"\n--formula\ntile_{tile}:asked by loads={8 * 1024 ** 3 // tile}:2 N^3 / {tile} x 4 B" for tile in (32, 64, 128)),
                 "Bytes asked for by loads of sketches with tiles of three sizes, against the formula")]),
    Scenario("S8 Operator fusion", "What does one kernel save over five, and what does an epilogue cost a product?", "s08_fusion",
             ["sketch_fusion"],
             _in("fusion", fused="sin_cos_fused_64mi", separate="sin_cos_unfused_64mi") |
             _in("kernels_bf16", product=_B + "4096x4096x1024"),
             [("separate", "fused", [TIME, HBM]), ("product_bias_gelu", "product", [TIME, HBM])], [HBM]),
    Scenario("S9 Recomputation", "Is it faster to make activations again than to store and load them?", "s09_recomputation",
             ["sketch_recomputation"],
             _in("measured", stored="sigmoids_stored_64mi", recomputed="sigmoids_recomputed_64mi"),
             [("recomputed", "stored", [TIME, HBM, EXECUTED])], [HBM, EXECUTED]),
    Scenario("S10 Precision", "What do smaller numbers gain where memory is the bound, and where arithmetic is?", "s10_precision",
             ["sketch_precision"],
             _in("measured", relu_f32="relu_f32_64mi", relu_f16="relu_f16_pairs_64mi") | _in("kernels_f32", f32="sgemm_vectorized_4096") |
             _in("tensor", tf32="tensor_tf32_4096", f16="tensor_f16_4096", bf16="tensor_bf16_4096", s8="tensor_s8_4096"),
             [("relu_f32", "relu_f16", [TIME, HBM]), ("f32", "tf32", [TIME]), ("tf32", "f16", [TIME]), ("f16", "bf16", [TIME]),
              ("f16", "s8", [TIME])], [HBM],
             [_picture("sketch_s10_roofline", "roofline",
                       "@sketch_precision\n" + _cases("f32", "tf32", "f16", "s8"),
                       "Roofline of sketched products in four types of number on an H200")]),
    Scenario("S10 on Hopper", "What do smaller numbers gain by wgmma, down to eight bits?", "s10_hopper", ["sketch_precision_hopper"], {},
             [("tf32", "f16", [TIME]), ("f16", "e4m3", [TIME]), ("e4m3", "s8", [TIME])], [EXECUTED]),
    Scenario("S13 Attention", "What does it save never to write S and P, and what does a causal mask?", "s13_attention",
             ["sketch_attention"],
             _in("tensor", flash="flash2_f16_64_2048") | _in("measured", unfused_f32="attention_unfused_2048") |
             _in("kernels_flash", flash_causal="flash2_f16_64_causal_2048"),
             [("unfused", "flash", [TIME, HBM]), ("flash", "flash_causal", [TIME])], [HBM],
             [_picture("sketch_s13_traffic", "traffic", "@sketch_attention\n" + _cases("unfused", "flash", "flash_causal") +
                       "\n--level\nHBM read\n--level\nHBM written", "HBM traffic of sketches of unfused and flash attention")]),
    Scenario("S13 on Hopper", "What do wgmma and a warpgroup that fetches by TMA gain?", "s13_hopper", ["sketch_attention_hopper"],
             _in("tensor", mma_64="flash2_f16_64_2048") | _in("kernels_flash", mma_128_causal="flash2_f16_128_causal_2048") |
             _in("kernels_flash_groups", wgmma_64="flash3_f16_64_2048", wgmma_128_causal="flash3_f16_128_causal_2048"),
             [("mma_64", "wgmma_64", [TIME, EXECUTED]), ("mma_128_causal", "wgmma_128_causal", [TIME, EXECUTED]),
              ("mma_128_backward", "wgmma_128_backward", [TIME, EXECUTED])], [EXECUTED]),
    Scenario("S17 Asynchronous copies", "What do copies gain that run ahead of the products, and how many stages do they need?", "s17_copies",
             ["sketch_copies"],
             _in("tensor", registers="mma_swizzled_f16_4096", async_2="mma_async_2_f16_4096", async_4="mma_async_4_f16_4096"),
             [("registers", "registers_ahead", [TIME]), ("registers", "async_2", [TIME, EXECUTED]), ("async_2", "async_4", [TIME])],
             [EXECUTED],
             [_picture("sketch_s17_copies", "ladder", "@sketch_copies\n@tensor\n" + _cases(
                 "registers", "mma_swizzled_f16_4096", "registers_ahead", "async_2", "mma_async_2_f16_4096", "async_4",
                 "mma_async_4_f16_4096"), "Rates of sketches that copy in four ways, each followed by the kernel that is built so")]),
    Scenario("S17 on Hopper", "What do TMA and wgmma add, a warpgroup that only fetches, and blocks that share tiles?", "s17_hopper",
             ["sketch_hopper"],
             _in("kernels_hopper", tma="pipeline_3_bf16_4096", tma_specialised="specialised_bf16_4096", tma_cluster="multicast_bf16_4096"),
             [("tma", "tma_specialised", [TIME]), ("tma_specialised", "tma_cluster", [TIME, HBM])], [EXECUTED, HBM],
             [_picture("sketch_s17_hopper", "ladder", "@sketch_hopper\n@kernels_hopper\n" + _cases(
                 "tma", "pipeline_3_bf16_4096", "tma_specialised", "specialised_bf16_4096", "tma_cluster", "multicast_bf16_4096"),
                       "Rates of sketches with TMA and wgmma, each followed by the kernel that is built so")]),
    Scenario("S18 Sparsity", "What does it gain to keep two of four, where the words of the factors must be read all the same?",
             "s18_sparsity", ["sketch_sparsity"], {}, [("dense", "two_of_four", [TIME, PRODUCTS]), ("dense", "half_of_the_blocks", [TIME, PRODUCTS])], [PRODUCTS]),
]

PICTURES = [picture for scenario in SCENARIOS for picture in scenario.pictures]


def _launches(path):
    """{id: [launch, ...]} of a result, in its order."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for launch in json.load(file)["cases"]:
            found.setdefault(launch["id"], []).append(launch)
    return found


def _half_interval(launches):
    """Of the cycles of a case, in parts of them, where its launches err alike."""
    low, high = (sum(one["coverage"]["cycles_interval_95"][side] for one in launches) for side in (0, 1))
    return (high - low) / (high + low)


def _error(value, of):
    return "" if value is None or of is None else f"{100 * (value / of - 1):+.1f} %"


class Profiles:
    """What the H200's profiles say of a launch. A kernel that a case launches several times was measured the first time."""

    def __init__(self, folder, traces):
        self.rows, self.of_kernel = {}, {}
        for name in sorted(os.listdir(folder)):
            if not os.path.exists(os.path.join(traces, name.removesuffix(".csv") + ".yaml")):
                continue
            with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
                for row in csv.DictReader(line for line in file if not line.startswith("#")):
                    if row.get("case") and row.get(CYCLES):
                        self.rows.setdefault((row["case"], int(row["launch"])), row)
                        self.of_kernel.setdefault((row["case"], row["kernel"]), row)

    def sum_of(self, quantity, launches):
        """Over the launches of a case, or None where one was not measured."""
        values = []
        for one in launches:
            row = self.rows.get((one["id"], one["launch"])) or self.of_kernel.get((one["id"], one["kernel"].split("(")[0]), {})
            values += [row.get(metric) for metric in quantity.metrics]
        return None if not all(values) else sum(map(float, values))


class Page:
    def __init__(self, builder):
        self.builder, self.read = builder, {}
        self.profiles = Profiles(os.path.join(builder.root, _PROFILES), os.path.join(builder.root, "traces"))

    def result(self, name):
        if name not in self.read:
            self.builder.predict(name)
            self.read[name] = _launches(self.builder.path(name))
        return self.read[name]

    def kernel(self, scenario, sketch):
        """Launches of the compiled kernel, or None."""
        if sketch not in scenario.kernels:
            return None
        result, case = scenario.kernels[sketch]
        return self.result(result)[case]

    def table(self, scenario, sketches):
        lines = ["| sketch | " + "".join(f"{of.name}{self._unit(of)} | " for of in scenario.columns) +
                 "cycles, thousands | compiled kernel | H200 measured | sketch to kernel | sketch to measured | kernel |",
                 "|---|" + "--:|" * (len(scenario.columns) + 5) + "---|"]
        errors = []
        for name, launches in sketches.items():
            kernel = self.kernel(scenario, name)
            cycles, compiled = TIME.of(launches), None if kernel is None else TIME.of(kernel)
            measured = None if kernel is None else self.profiles.sum_of(TIME, kernel)
            if measured is not None:
                errors.append(abs(cycles / measured - 1))
            cells = [f"`{name}`", *(of.text(of.of(launches)) for of in scenario.columns),
                     f"{TIME.text(cycles)} ± {100 * _half_interval(launches):.0f} %",
                     "none" if kernel is None else TIME.text(compiled), "not measured" if measured is None else TIME.text(measured),
                     _error(cycles, compiled), _error(cycles, measured),
                     "" if kernel is None else f"`{scenario.kernels[name][1]}`"]
            lines.append("| " + " | ".join(cells) + " |")
        return lines, errors

    @staticmethod
    def _unit(of):
        return {1: "", 1e6: ", MB" if of in (HBM, ASKED) else ", millions"}[of.unit]

    def lesson(self, scenario, sketches, lesson):
        """How two sketches compare, and how the kernels do."""
        a, b, quantities = lesson
        kernels = [self.kernel(scenario, name) for name in (a, b)]
        parts = []
        for of in quantities:
            aside = []
            if None not in kernels:
                aside.append(f"compiled {of.of(kernels[0]) / of.of(kernels[1]):.2f}")
                measured = [self.profiles.sum_of(of, one) for one in kernels]
                if None not in measured:
                    aside.append(f"measured {measured[0] / measured[1]:.2f}")
            parts.append(f"{of.of(sketches[a]) / of.of(sketches[b]):.2f}" + (f" ({', '.join(aside)})" if aside else "") +
                         f" times the {of.name}")
        joined = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
        return f"`{a}` takes {joined} of `{b}`." + self._left_open(sketches[a], sketches[b])

    @staticmethod
    def _left_open(a, b):
        """What is said where two times differ by less than they are sure to."""
        sure = math.hypot(_half_interval(a), _half_interval(b))
        apart = abs(TIME.of(a) / TIME.of(b) - 1)
        return f" Which is faster stays open: the sketches' ratio is known to ±{100 * sure:.0f} %." if apart < sure else ""

    def text(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sketches.md"), encoding="utf-8") as file:
            head = file.read().rstrip()
        body, errors = [], []
        for scenario in SCENARIOS:
            sketches = {name: launches for result in scenario.results for name, launches in self.result(result).items()}
            with open(os.path.join(self.builder.root, _FOLDER, scenario.stem + ".yaml"), encoding="utf-8") as file:
                source = file.read().rstrip()
            table, off = self.table(scenario, sketches)
            errors += off
            body += [f"## {scenario.title}", "", scenario.question, "", "```yaml", source, "```", "", *table, ""]
            for picture in scenario.pictures:
                body += [f"![{picture.alt}](gallery/{picture.name}.svg)", ""]
            body += [" ".join(self.lesson(scenario, sketches, one) for one in scenario.lessons), "", "```sh"]
            body += ["forewarp " + " ".join(RESULTS[result]) for result in scenario.results] + ["```", ""]
        summary = (f"Of these sketches, {len(errors)} describe kernels that were measured: their cycles are "
                   f"{100 * sum(errors) / len(errors):.1f} % off on average, {100 * max(errors):.1f} % at worst.")
        return "\n".join([head, "", summary, "", *body])
