"""What the gallery shows: the results it predicts, and its pictures with the sentences that go with them."""


def _predict(stem, *cases, gpu="h200-sxm", launch=None, cache="cold"):
    sm = "sm_80" if gpu.startswith("a100") else "sm_90"
    words = ["predict", f"traces/{sm}/{stem}.cubin", "--launch", launch or f"traces/{stem}.yaml", "--gpu", gpu]
    if cache != "cold":
        words += ["--cache", cache]
    words += ["--causes", "counted"]  # no picture shows what would be gained
    return words + [word for case in cases for word in ("--case", case)]


_WARP_TILED = "matmul_07_warp_tiled_double_buffered"

# Name of a result -> what `forewarp` is given to make it; RESULTS stands for the folder of results.
RESULTS = {
    "measured": ["validate", "--suites", "plots/gallery/suites.yaml", "--suite", "gallery"],
    "tensor": ["validate", "--suites", "plots/gallery/suites.yaml", "--suite", "tensor_gallery"],
    "waves_a100": _predict("matmul_06_vectorized", "sgemm_vectorized_1792", "sgemm_vectorized_1793", gpu="a100-sxm4-40gb"),
    "waves_h200": _predict(_WARP_TILED, "sgemm_warp_tiled_1408", "sgemm_warp_tiled_1409", launch="RESULTS/sweep.yaml"),
    "sweep": _predict(_WARP_TILED, launch="RESULTS/sweep.yaml") + ["--budget", "3"],
    "rows_columns": _predict("copy_01_row_column", "copy_along_rows_1024", "copy_down_columns_1024"),
    "tiles": _predict("copy_04_tile_loads", "tile_column_sums_1024x1024_pitch_1024", "tile_column_sums_1024x1025_pitch_1025"),
    "overhang": _predict(_WARP_TILED, "sgemm_warp_tiled_256x256", "sgemm_warp_tiled_256x257"),
    "fusion": _predict("elementwise_01_sin_cos", "sin_cos_unfused_64mi", "sin_cos_fused_64mi"),
    "divergence": _predict("divergence_01_branch_ways", "divergence_first_four_block_32_256ki", "divergence_by_lane_4_256ki",
                           "divergence_by_warp_4_256ki"),
    "student": _predict("attention_02_student", "student_24k_512_rows_64", "student_24k_512_rows_128",
                        "student_24k_512_rows_512", cache="sequence"),
    "student_shared": _predict("attention_02_student", "student_24k_512_rows_512", "student_16k_512_rows_512"),
    "nanogpt_products": _predict(_WARP_TILED, launch="RESULTS/nanogpt/" + _WARP_TILED + ".yaml", cache="sequence"),
    "nanogpt_slow": _predict("attention_01_unfused", launch="RESULTS/nanogpt/attention_01_unfused.yaml", cache="sequence"),
    "nanogpt_flash": _predict("attention_03_flash", launch="RESULTS/nanogpt/attention_03_flash.yaml", cache="sequence"),
    "nanogpt_training_flash": _predict("attention_07_nanogpt_flash", "nanogpt_flash_64x6x256", cache="sequence"),
    "specialised": _predict("matmul_23_warp_specialised", "specialised_bf16_4096") + ["--warps", "0"],
    "flash3": _predict("attention_08_flash3", "flash3_f16_128_4096") + ["--warps", "0"],
    "profile": _predict("matmul_12_tensor", "tensor_f16_4096"),
    "launches": _predict("elementwise_01_sin_cos", "sin_cos_unfused_1mi", "sin_cos_fused_1mi", cache="sequence"),
}


class Picture:
    """One picture. words: what follows `forewarp plot`, with results as @NAME."""

    def __init__(self, scenario, name, kind, words, text, alt):
        self.scenario, self.name, self.kind, self.given, self.text, self.alt = scenario, name, kind, words.split("\n"), text, alt

    def results(self):
        return [word[1:] for word in self.given if word.startswith("@")]

    def words(self):
        return ["plot", self.kind] + [f"RESULTS/{w[1:]}.json" if w.startswith("@") else w for w in self.given if w]

    def shown(self):
        """The commands as a reader would type them."""
        lines = []
        for name in self.results():
            lines.append("forewarp " + " ".join(RESULTS[name]).replace("RESULTS", "build/gallery") +
                         f" --json build/gallery/{name}.json")
        drawn = [f"'{w}'" if " " in w or "*" in w else w for w in self.words()]
        lines.append("forewarp " + " ".join(drawn).replace("RESULTS", "build/gallery") + f" --out {self.name}.svg")
        return lines


def _cases(*names):
    return "\n".join(f"--case\n{name}" for name in names)


_LADDER = ["sgemm_naive_uncoalesced_1024", "sgemm_coalesced_1024", "sgemm_shared_tiled_1024", "sgemm_coarsened_1d_1024",
           "sgemm_coarsened_2d_1024", "sgemm_vectorized_1024", "sgemm_warp_tiled_1024"]

_TENSOR_LADDER = ["mma_global_f16_4096", "mma_shared_f16_4096", "mma_padded_f16_4096", "mma_swizzled_f16_4096",
                  "mma_async_2_f16_4096", "mma_async_3_f16_4096", "mma_async_4_f16_4096", "tensor_f16_4096"]

PICTURES = [
    Picture("S1 Roofline", "s01_roofline", "roofline",
            "@measured\n" + _cases("sgemm_coalesced_512", "sgemm_warp_tiled_512", "sgemm_warp_tiled_1024", "sgemm_warp_tiled_2048",
                                   "sgemm_warp_tiled_4096"),
            "Square fp32 products from 512 to 4096, each at its arithmetic intensity for L1, L2 and HBM. Circles are predicted, "
            "diamonds measured, and a thin line joins each pair. HBM holds none of them back: its ridge lies far to the left. "
            "The small products lack blocks to fill 132 SMs; the large ones come within sight of the fp32 roof.",
            "Roofline of fp32 products of five sizes on an H200 with three memory roofs"),
    Picture("S2 Wave quantization", "s02_waves_a100", "waves", "@waves_a100",
            "At N = 1792, 14 x 14 tiles of 128 x 128 fit on the 108 SMs of an A100 at once, two per SM (with tiles of 256 x 128 "
            "it would be 98 tiles on 108 SMs). One more row and column makes 15 x 15 tiles. The few that do not fit start a "
            "second wave while most of the GPU is idle.",
            "Blocks of a product of 1792 and of 1793 on the SMs of an A100 over time"),
    Picture("S2 Wave quantization", "s02_waves_h200", "waves", "@waves_h200",
            "The same cliff on the 132 SMs of an H200, one block per SM. The 121 tiles at N = 1408 are one wave; the 144 at N = "
            "1409 are a wave and 12 blocks. The time nearly doubles for 0.2 % more work. The shaded tail shows where SMs are "
            "idle.",
            "Blocks of a product of 1408 and of 1409 on the SMs of an H200 over time"),
    Picture("S3 The mystery plot", "s03_sweep", "sweep", "@sweep\n--points\nvalidation/sweep/h200-sxm/sgemm_warp_tiled.csv",
            "Rate against size for our best fp32 product, predicted (circles) and measured on an H200 (diamonds, 277 sizes), "
            "coloured by the largest power of two that divides N. From 512 up the prediction is 4.5 % off on average. Each "
            "saw-tooth starts where a wave is added (dotted). Sizes that are not a multiple of 4 run below the others: their "
            "rows are not 16-byte aligned, so they take the scalar path.",
            "TFLOP/s against size of a product, predicted and measured, with wave jumps"),
    Picture("S3 The mystery plot", "s03_library", "sweep", "--points\nvalidation/sweep/h200-sxm/library_bf16.csv",
            "The library's bf16 product on the same H200, measured. The curves fan out far more with divisibility, because rows "
            "whose length is not a multiple of 8 cannot be fetched by the tensor memory accelerator at all. From 1792 to 1793 "
            "the rate falls from 538 to 105 TFLOP/s.",
            "Measured TFLOP/s against size of the library's bf16 product, coloured by divisibility"),
    Picture("S4 Coalescing", "s04_coalescing", "coalescing", "@rows_columns",
            "A warp that reads along a row asks for 128 bytes in four 32-byte sectors. A warp that reads down a column touches "
            "32 sectors for the same 128 bytes and wastes seven eighths of what moves. Orange is fetched but not asked for.",
            "Lanes against memory sectors for a copy along rows and one down columns"),
    Picture("S4 Coalescing", "s04_traffic", "traffic",
            "@measured\n" + _cases("copy_along_rows_8192", "copy_down_columns_8192"),
            "What the pattern costs: the same copy of 8192 x 8192 floats moves eight times the sectors through L1 when warps "
            "walk down columns. Bars are predicted, diamonds measured.",
            "Bytes by memory level of a coalesced and an uncoalesced copy"),
    Picture("S5 Misaligned tiles", "s05_coalescing", "coalescing", "@tiles",
            "With rows of 1024 floats, a tile row of 32 starts on a sector boundary and covers four sectors. With rows of 1025 "
            "it starts anywhere, and most rows straddle a fifth. Padding the pitch to a multiple of 32 undoes it.",
            "Sectors touched by an aligned and by a shifted tile row"),
    Picture("S5 Misaligned tiles", "s05_vocabulary", "ladder",
            "@measured\n" + _cases("sgemm_vectorized_vocabulary_50257", "sgemm_vectorized_vocabulary_50304"),
            "GPT-2's vocabulary as it is (50257 columns) and padded to 50304. The padded product does more work in less time. "
            "Nearly all of the gain is alignment: both need 393 x 8 tiles and run at the same occupancy.",
            "Rates of the vocabulary product with and without padding"),
    Picture("S6 Tile quantization", "s06_tiles", "waves", "@overhang",
            "A 256 x 256 result is four tiles of 128 x 128. One more column needs six, two of which have a single column to "
            "compute: a third of all tile elements lie outside the matrix. Both fit in one wave with nearly all SMs idle, so "
            "the extra time comes from the lost alignment of the rows.",
            "Blocks of a 256 x 256 and a 256 x 257 product"),
    Picture("S7 Tiling", "s07_tiling", "traffic",
            "@measured\n" + _cases("sgemm_coalesced_1024", "sgemm_shared_tiled_1024") +
            "\n--level\nasked by loads\n--level\nL2\n--formula\nsgemm_coalesced_1024:asked by loads=4429185024:N^3 x 4 B (1 + 1/32)"
            "\n--formula\nsgemm_shared_tiled_1024:asked by loads=268435456:2 N^3 / T x 4 B",
            "Without tiles every thread reads a row of one input and a column of the other, so each input is read N times "
            "(lanes of a warp share the row element, which the profiler counts once a warp). With shared tiles of T = 32 each "
            "is read N / T times. The marks are the formula; bars and diamonds meet it.",
            "Bytes asked for by loads with and without shared tiles, against the formula"),
    Picture("S8 Operator fusion", "s08_fusion", "traffic",
            "@fusion\n@measured\n" + _cases("sin_cos_unfused_64mi", "sin_cos_fused_64mi", "elu_unfused_64mi", "elu_fused_64mi"),
            "sin² x + cos² x as five kernels and as one, ELU as three and as one, over 64 Mi floats. Fusion removes the "
            "intermediate arrays. HBM traffic falls with the number of arrays read and written, and time follows.",
            "HBM bytes of fused and unfused element-wise kernels"),
    Picture("S9 Recomputation", "s09_recomputation", "traffic",
            "@measured\n" + _cases("sigmoids_stored_64mi", "sigmoids_recomputed_64mi") + "\n--level\nasked by loads\n--level\nasked by stores\n--level\nHBM read\n--level\nHBM written" +
            "".join(f"\n--formula\nsigmoids_{case}_64mi:asked by {op}={count * 268435456}:{count} an element"
                    for case, op, count in (("stored", "loads", 4), ("stored", "stores", 4), ("recomputed", "loads", 3), ("recomputed", "stores", 2))),
            "Three stacked sigmoids, forward and backward: 8 accesses per element with stored activations, 5 with recomputed "
            "ones. The recomputing version executes more instructions and asks for 5/8 of the bytes.",
            "HBM bytes of stored and recomputed sigmoids"),
    Picture("S10 Precision", "s10_precision", "roofline",
            "@measured\n" + _cases("relu_f32_64mi", "relu_f16_64mi", "relu_f16_pairs_64mi") +
            "".join(f"\n--work\n{case}=67108864" for case in ("relu_f32_64mi", "relu_f16_64mi", "relu_f16_pairs_64mi")),
            "ReLU does one operation for 8 bytes in fp32 and for 4 in fp16, so its point moves right by a factor of two along "
            "the HBM roof, and its rate follows. The pipe's roof moves, too, but does not matter here.",
            "Roofline of ReLU in fp32, fp16 and pairs of fp16"),
    Picture("S10 Precision", "s10_types", "roofline",
            "@tensor\n" + _cases("sgemm_warp_tiled_4096", "tensor_tf32_4096", "tensor_f16_4096", "tensor_e4m3_4096", "tensor_s8_4096"),
            "The same product, N = 4096, type by type: fp32 on the FMA pipes, then tf32, fp16, fp8 and int8 on tensor cores by mma.sync, under "
            "every roof of the H200. Types with a lower roof by these instructions have both: wgmma alone reaches the upper one. The fp8 product "
            "is slower than fp16: mma.sync has no fp8 on Hopper, so ptxas converts to fp16.",
            "Roofline of products in five types of number on an H200"),
    Picture("S11 Control divergence", "s11_divergence", "divergence", "@divergence",
            "Active lanes along one warp's instructions: four of 32 threads take the branch; four ways by lane; the same four "
            "ways regrouped by warp. Where lanes decide, the paths run one after another, each with part of the lanes. "
            "Regrouped, every warp takes one path with all of them.",
            "Active lanes over the instruction stream with diverging branches marked"),
    Picture("S12 The matmul ladder", "s12_ladder", "ladder", "@measured\n" + _cases(*_LADDER),
            "Each step of the ladder at N = 1024, predicted (bar) and measured (diamond), with what bounds it. Coalescing is "
            "the big step. The register-tiled kernels lose at this size, because 64 tiles leave half of the SMs without a "
            "block.",
            "Rates of seven matrix product kernels, predicted and measured"),
    Picture("S12 The matmul ladder", "s12_stalls", "stalls", "@measured\n" + _cases(*_LADDER),
            "What resident warps do, predicted beside measured. The uncoalesced kernel queues for the load unit (lg throttle), "
            "the tiled one for shared memory (mio throttle); coarsening removes both. What remains is fixed latency.",
            "Shares of warp states of seven matrix product kernels, predicted and measured"),
    Picture("S12 The matmul ladder", "s12_tensor", "ladder", "@tensor\n" + _cases(*_TENSOR_LADDER),
            "The ladder goes on with tensor cores, N = 4096 in fp16: fragments from global memory, shared tiles read by ldmatrix, "
            "the same without bank conflicts, copies that run ahead by two to four stages, and tiles of 128 x 256.",
            "Rates of eight fp16 matrix product kernels, predicted and measured"),
    Picture("S12 The matmul ladder", "s12_tensor_stalls", "stalls", "@tensor\n" + _cases(*_TENSOR_LADDER),
            "Warps first wait for global memory (long scoreboard), then for the banks (short scoreboard, mio throttle), then for "
            "barriers, and at last for the tensor pipe itself.",
            "Shares of warp states of eight fp16 matrix product kernels, predicted and measured"),
    Picture("S13 Attention", "s13_attention", "traffic",
            "@measured\n" + _cases("attention_unfused_512", "attention_unfused_1024", "attention_unfused_2048", "flash_attention_512",
                                   "flash_attention_1024", "flash_attention_2048") + "\n--level\nHBM read\n--level\nHBM written",
            "Writing out S = QK^T and P = softmax(S) makes HBM traffic grow with the square of the sequence length; "
            "FlashAttention's grows linearly. (An H200's L2 holds the matrices of the shorter lengths, so the square shows from "
            "1024 on.)",
            "HBM traffic of unfused and flash attention against length"),
    Picture("S13 Attention", "s13_flash", "traffic",
            "@tensor\n" + _cases("flash1_f16_64_2048", "flash2_f16_64_2048") + "\n--level\nHBM read\n--level\nHBM written" +
            "\n--formula\nflash1_f16_64_2048:HBM read=3221225472:16 (Q + O) + K + V - O"
            "\n--formula\nflash1_f16_64_2048:HBM written=2147483648:16 O"
            "\n--formula\nflash2_f16_64_2048:HBM read=201326592:Q + K + V"
            "\n--formula\nflash2_f16_64_2048:HBM written=67108864:O",
            "256 heads of 64 at length 2048. FlashAttention-1 loops over keys outside: with tiles of 128 keys, Q is read and O (in "
            "fp32) read and written once for each of 16 tiles. FlashAttention-2 loops over queries outside and keeps O in registers, "
            "so everything passes through memory once. The last of what it writes is still in L2 when the kernel ends.",
            "HBM traffic of FlashAttention-1 and -2 against the formulas"),
    Picture("S13 Attention", "s13_warps", "warps", "@flash3\n--cycles\n13900:19900",
            "Two rounds of FlashAttention-3's block, head size 128: the two warpgroups take turns, so that one's softmax (green) runs "
            "beside the other's products, and the tensor pipes stand still only briefly. The first group runs ahead and waits for "
            "the next tile of K (dark orange), whose stage the second group holds for longer; it costs nothing, as the second, which "
            "is last, never waits for a copy.",
            "What the warps of a FlashAttention-3 block do, its copies, products and tensor pipes, over 6,000 cycles"),
    Picture("S14 A student's FlashAttention", "s14_student", "timeline", "@student\n--measured\nvalidation/sequences/h200-sxm.csv",
            "Two kernels per tile, and one pair of launches for each. The time halves whenever the rows of a tile double, "
            "because a launch takes about as long however few blocks it has. The GPU looks busy all the time and does next to "
            "nothing.",
            "Timelines of the two-kernel FlashAttention with tiles of 64, 128 and 512 rows"),
    Picture("S14 A student's FlashAttention", "s14_occupancy", "occupancy", "@student_shared",
            "A block of 32 threads with 24 KiB of shared memory leaves room for few warps per SM; 16 KiB leaves room for a "
            "third more. Points mark what the kernels have, lines what another choice would give.",
            "Occupancy of the student's kernels with 24 and 16 KiB of shared memory"),
    Picture("S15 nanoGPT's attention", "s15_slow", "timeline",
            "@nanogpt_products\n@nanogpt_slow\n--case\nnanogpt_qkv\n--case\nattention_unfused_nanogpt\n--case\nnanogpt_projection\n--join\nnanoGPT, slow",
            "One attention layer of nanoGPT's Shakespeare configuration, forward, in fp32. The products and the softmax of "
            "attention take two fifths of the time and pass the 100 MB of S and P through memory.",
            "Timeline of nanoGPT's attention layer with separate kernels"),
    Picture("S15 nanoGPT's attention", "s15_flash", "timeline",
            "@nanogpt_products\n@nanogpt_flash\n--case\nnanogpt_qkv\n--case\nflash_attention_nanogpt\n--case\nnanogpt_projection\n--join\nnanoGPT, flash",
            "The same layer with FlashAttention: one kernel instead of three, in a third of their time (measured: 150 against "
            "397 microseconds), and most of the HBM traffic gone. The products on either side are unchanged.",
            "Timeline of nanoGPT's attention layer with FlashAttention"),
    Picture("S15 nanoGPT's attention", "s15_training_flash", "timeline", "@nanogpt_training_flash",
            "Forward and backward, in fp16 and with dropout: the backward pass computes S and P again, from Q, K and the rows' sums, and "
            "never writes them.",
            "Timeline of nanoGPT's attention forward and backward with FlashAttention"),
    Picture("S16 Launches", "s16_launches", "timeline", "@launches\n--mode\nstream\n--mode\ngraph\n--measured\nvalidation/sequences/h200-sxm.csv",
            "Five kernels of a few microseconds pay for five starts and ends, the fused one for one. The host queues launches "
            "ahead of the GPU, so a captured graph saves calls, and saves time only where kernels are shorter than a call.",
            "Timelines of five small kernels in a stream and as a graph, and of the fused one"),
    Picture("S17 Asynchronous copies", "s17_copies", "stalls",
            "@tensor\n" + _cases("staged_by_registers_32ki", "staged_async_1_32ki", "staged_async_2_32ki", "staged_async_4_32ki"),
            "Tiles on their way to shared memory, through registers and by cp.async with one, two and four stages in flight. One "
            "stage waits as long as registers do; with four the next tiles are there in time, and the kernel runs at the rate of "
            "HBM.",
            "Shares of warp states of tile copies through registers and by cp.async"),
    Picture("S17 Asynchronous copies", "s17_warps", "warps", "@specialised\n--cycles\n5000:9000",
            "A warp-specialised product by TMA and wgmma: the producer waits for a free stage (light orange), asks for the next 48 KiB and waits "
            "again, while two warpgroups wait for little but their products. Each copy takes 1,600 cycles, but four stages of "
            "about 1,000 cycles give it more than twice that, so that the tensor pipes never stand still; only the first tiles, up to cycle "
            "5,400, come too late from cold caches.",
            "What the warps of a warp-specialised product do, its copies, products and tensor pipes, over 4,000 cycles"),
    Picture("S18 Sparsity", "s18_sparse", "ladder", "@tensor\n" + _cases("tensor_f16_4096", "tensor_sparse_f16_4096#1"),
            "2:4 structured sparsity: mma.sp skips the half of a row that is zero. The rate counts the zeros, as data sheets do. The pipe "
            "could do half as much again as with dense mma.sync, but what feeds it is as busy as before, so little comes of it.",
            "Rates of a dense and of a 2:4 sparse product"),
    Picture("S18 Sparsity", "s18_blocks", "ladder",
            "@tensor\n" + _cases("tensor_block_sparse_f16_4096_keep_100", "tensor_block_sparse_f16_4096_keep_50",
                                 "tensor_block_sparse_f16_4096_keep_25"),
            "Block sparsity skips whole tiles: with a half or a quarter of them kept, the time falls nearly as much, and the rate of "
            "what is left by a fifth.",
            "Rates and times of block-sparse products with all, a half and a quarter of the blocks"),
    Picture("S19 Occupancy", "s19_occupancy", "occupancy", "@overhang\n--case\nsgemm_warp_tiled_256x256",
            "What limits the best product: at 130 registers per thread only one block of 256 threads fits. At 128 registers two "
            "would. Shared memory and warps would allow more.",
            "Occupancy limits of the warp-tiled product and what would change them"),
    Picture("S20 A TPU beside it", "s20_tpu", "roofline", "@tensor\n" + _cases("tensor_bf16_4096", "tensor_s8_4096") + "\n--machine\ntpu-v5e",
            "A TPU v5e core has one matrix unit and no SMs: on a roofline it is two ceilings and a slope. Type by type, an H200's roofs "
            "stand more than five times as high in bf16 and int8, and its HBM is nearly six times as fast, so both need about as much work "
            "per byte.",
            "Roofline of an H200 with the ceilings of a TPU v5e, in bf16 and int8"),
    Picture("S21 The profile itself", "s21_validation", "validation", "@measured",
            "Every launch that this gallery draws from the suite: predicted against measured cycles, and the distribution of "
            "the error with its tail. `forewarp report RESULT.json --html FILE` puts the counters side by side, in Nsight "
            "Compute's order.",
            "Predicted against measured cycles and the error's distribution"),
    Picture("S21 The profile itself", "s21_memory", "memory", "@profile",
            "The memory chart of one launch: what passes between which units, how fast, and how near to its peak.",
            "Bytes and rates between the units for a tensor-core product"),
    Picture("S21 The profile itself", "s21_mix", "mix", "@profile",
            "What the same launch executes: mostly HMMA, the loads of its fragments by LDSM, and little else.",
            "Opcodes of a tensor-core product by how often they are executed"),
    Picture("What a prediction costs", "cost", "cost", "--points\nvalidation/speed/work.csv",
            "From 1024 to 16384 the arithmetic of a product grows 4096 times, that of attention 256 times; the cost of a "
            "prediction hardly grows for kernels that cost seconds from the start. The register-tiled products start below a "
            "second, where everything is simulated, and level off at 2.6 and 2.9 times that. Measured on one free core; "
            "`validation/speed/measure.py run` and `work` write the table.",
            "Processor seconds of predictions of five kernels against size, beside their work"),
]
