"""The cases of attention on tensor cores (kernels/attention from 04 on), for launches.py."""
from math import ceil

from launches import case, launch, uniform, zero
from tensor_launches import with_sweeps

KIB = 1 << 10
TOKENS = 16384  # in a batch, as in the published figures: heads of 64 and 128 make a width of 2048
LENGTHS = [256, 512, 1024, 2048, 4096, 8192, 16384]
# Name, length, heads, query heads to a head of keys.
CHECKS = [(f"check_{length}_heads_{heads}_by_{group}", length, heads, group)
          for length, heads, group in [(64, 2, 1), (200, 4, 2), (333, 2, 1)]]
BACKWARD_CHECKS = [(f"check_{length}_heads_{heads}_by_{group}", length, heads, group)
                   for length, heads, group in [(64, 1, 1), (72, 4, 2), (165, 1, 1)]]


def batch(length, head, group=1):
    name = f"{length}" + (f"_by_{group}" if group > 1 else "")
    return (name, length, TOKENS // length * (2048 // head), group)


def shared(kib, *launched):
    return launch(*launched) | {"dynamic_shared_bytes": str(int(kib * KIB))}


def inputs(length, heads, group, head, kind="f16"):
    return {name: uniform(heads // share * length * head, seed, kind)
            for seed, (name, share) in enumerate((("q", 1), ("k", group), ("v", group)), 1)}


def prefix(causal):
    return "causal_" if causal else ""


def flash1(head, causal, name, length, heads, _=1):
    rows = heads * length
    buffers = inputs(length, heads, 1, head) | {"o": zero(rows * head), "row_max": zero(rows), "row_sum": zero(rows)}
    return case(f"flash1_f16_{head}_{prefix(causal)}{name}", buffers,
                shared(36.5 * head / 64 - (0.5 if head == 128 else 0), f"flash1_f16_{head}", heads, 128,
                       *buffers, length, head ** -0.5, causal))


def forward(kind, head, length, heads, group, causal):
    return shared(head // 2, f"flash2_{kind}_{head}", (ceil(length / 128), heads), 128, "q", "k", "v", "o", "log_sums",
                  length, group, head ** -0.5, causal)


def outputs(length, heads, head):
    return {"o": zero(heads * length * head, 2), "log_sums": zero(heads * length)}


def flash2(kind, head, causal, name, length, heads, group=1):
    return case(f"flash2_{kind}_{head}_{prefix(causal)}{name}",
                inputs(length, heads, group, head, kind) | outputs(length, heads, head),
                forward(kind, head, length, heads, group, causal))


def gradients(length, heads, group, head):
    elements = heads * length * head
    return {"d_o": uniform(elements, 4, "f16"), "delta": zero(heads * length), "dq_sums": zero(elements),
            "dq": zero(elements, 2), "dk": zero(elements // group, 2), "dv": zero(elements // group, 2)}


def backward(head, causal, name, length, heads, group=1):
    """With the forward pass before it, whose o and log_sums it takes."""
    rows = heads * length
    return case(f"flash2_backward_f16_{head}_{prefix(causal)}{name}",
                inputs(length, heads, group, head) | outputs(length, heads, head) | gradients(length, heads, group, head),
                forward("f16", head, length, heads, group, causal),
                launch(f"flash2_delta_f16_{head}", ceil(rows / 8), 256, "o", "d_o", "delta", "dq_sums", rows),
                shared(head + 17, f"flash2_backward_f16_{head}", (ceil(length / 128), heads // group), 256, "q", "k", "v", "d_o",
                       "log_sums", "delta", "dq_sums", "dk", "dv", length, group, head ** -0.5, causal),
                launch("flash2_dq_f16", ceil(rows * head / 512), 256, "dq_sums", "dq", rows * head // 2))


SEED, DROPPED = 1234, 13107  # a fifth of 65536


def nanogpt_slow(name, heads, length):
    rows, elements, head = heads * length, heads * length * length, 64
    names = ("s", "scaled", "masked", "p", "w", "dw", "dp", "dmasked", "dscaled", "ds")
    buffers = inputs(length, heads, 1, head) | {"o": zero(rows * head, 2), "d_o": uniform(rows * head, 4, "f16")} | \
        {of: zero(elements, 2) for of in names} | {of: zero(rows * head, 2) for of in ("dq", "dk", "dv")}
    tall = ceil(length / 128)

    def product(layout, *of):
        wide = layout == "nt"
        return shared(48 if wide else 36, f"batched_{layout}_f16", (tall if wide else 1, tall, heads), 128, *of, length,
                      length if wide else head, head if wide else length)

    def each(kernel, *of):
        return launch(kernel, ceil(elements / 256), 256, *of)

    return case(f"nanogpt_slow_{name}", buffers,
                product("nt", "q", "k", "s"), each("scale_f16", "s", "scaled", elements, head ** -0.5),
                each("mask_f16", "scaled", "masked", length, elements, -65504.0),
                launch("softmax_f16", ceil(rows / 8), 256, "masked", "p", rows, length),
                each("dropout_f16", "p", "w", length, elements, SEED, DROPPED), product("nn", "w", "v", "o"),
                product("nt", "d_o", "v", "dw"), product("tn", "w", "d_o", "dv"),
                each("dropout_f16", "dw", "dp", length, elements, SEED, DROPPED),
                launch("softmax_backward_f16", ceil(rows / 8), 256, "p", "dp", "dmasked", rows, length),
                each("mask_f16", "dmasked", "dscaled", length, elements, 0.0),
                each("scale_f16", "dscaled", "ds", elements, head ** -0.5),
                product("nn", "ds", "k", "dq"), product("tn", "ds", "q", "dk"))


def nanogpt_flash(name, heads, length):
    rows, head, tall = heads * length, 64, ceil(length / 128)
    return case(f"nanogpt_flash_{name}",
                inputs(length, heads, 1, head) | outputs(length, heads, head) | gradients(length, heads, 1, head),
                shared(32, "nanogpt_flash_f16", (tall, heads), 128, "q", "k", "v", "o", "log_sums", length, 0.125, SEED, DROPPED),
                launch("nanogpt_delta_f16", ceil(rows / 8), 256, "o", "d_o", "delta", "dq_sums", rows),
                shared(81, "nanogpt_flash_backward_f16", (tall, heads), 256, "q", "k", "v", "d_o", "log_sums", "delta", "dq_sums",
                       "dk", "dv", length, 0.125, SEED, DROPPED),
                launch("nanogpt_dq_f16", ceil(rows * head / 512), 256, "dq_sums", "dq", rows * head // 2))


# nanoGPT: a batch of 64 texts of 256, six heads of 64; then a small batch.
TEXTS = [("64x6x256", 64 * 6, 256), ("8x6x256", 8 * 6, 256),
         *((f"check_{heads}x{length}", heads, length) for heads, length in ((2, 64), (3, 136), (1, 99)))]


def flash_attention():
    masks = (0, 1)
    one_to_one = [of for of in CHECKS if of[3] == 1] + [("check_200_heads_4", 200, 4, 1)]
    return with_sweeps({
        "attention_04_flash1": [flash1(head, causal, *of) for head in (64, 128) for causal in masks
                                for of in [batch(512, head), batch(2048, head), *one_to_one]] +
                               [flash1(64, 0, "1000_heads_128", 1000, 128), flash1(128, 0, "4096", 4096, 64)],
        "attention_05_flash2": [flash2("f16", head, causal, *of) for head in (64, 128) for causal in masks
                                for of in [*(batch(length, head) for length in LENGTHS), *CHECKS]] +
                               [flash2("f16", 128, 1, *batch(4096, 128, group)) for group in (4, 16)] +
                               [flash2("f16", 64, causal, f"{n}_heads_100", n, 100) for causal, n in ((0, 1000), (1, 777))] +
                               [flash2("bf16", 128, 1, *of) for of in [batch(2048, 128), batch(8192, 128), *CHECKS]],
        "attention_05_flash2.backward":
            [backward(head, causal, *of) for head in (64, 128) for causal in masks
             for of in [*(batch(length, head) for length in (512, 2048, 8192)), *BACKWARD_CHECKS]] +
            [backward(128, 1, *batch(4096, 128, 4)), backward(64, 0, "1000_heads_100", 1000, 100)],
        "attention_06_nanogpt_slow": [nanogpt_slow(*of) for of in TEXTS],
        "attention_07_nanogpt_flash": [nanogpt_flash(*of) for of in TEXTS],
    })
