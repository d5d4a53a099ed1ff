"""Attention in Triton, FlashAttention's way: forward by pointers and by tensor maps, backward in one kernel a tile of keys."""
import triton
import triton.language as tl

from instances import instance


@triton.jit
def attention(q, k, v, o, lse, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    """A program takes BM queries of a head: tensors of shape (batch, heads, length, D)."""
    tile = tl.program_id(0)
    head = tl.program_id(1)
    base = head.to(tl.int64) * length * D
    rows = tile * BM + tl.arange(0, BM)
    keys = tl.arange(0, BN)
    lanes = tl.arange(0, D)
    queries = tl.load(q + base + rows[:, None] * D + lanes[None, :])
    pk = k + base + keys[None, :] * D + lanes[:, None]
    pv = v + base + keys[:, None] * D + lanes[None, :]
    most = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    sums = tl.zeros([BM, D], dtype=tl.float32)
    scale *= 1.44269504
    last = (tile + 1) * BM if CAUSAL else length
    for first in range(0, last, BN):
        scores = tl.dot(queries, tl.load(pk)) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= first + keys[None, :], scores, -1.0e6)
        larger = tl.maximum(most, tl.max(scores, 1))
        weights = tl.math.exp2(scores - larger[:, None])
        shrink = tl.math.exp2(most - larger)
        total = total * shrink + tl.sum(weights, 1)
        sums = tl.dot(weights.to(v.dtype.element_ty), tl.load(pv), sums * shrink[:, None])
        most = larger
        pk += BN * D
        pv += BN * D
    tl.store(lse + head * length + rows, most + tl.math.log2(total))
    tl.store(o + base + rows[:, None] * D + lanes[None, :], (sums / total[:, None]).to(o.dtype.element_ty))


@triton.jit
def attention_by_maps(q, k, v, o, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    """As attention, by tensor maps of (batch * heads * length, D)."""
    tile = tl.program_id(0)
    base = tl.program_id(1) * length
    rows = tile * BM + tl.arange(0, BM)
    keys = tl.arange(0, BN)
    queries = q.load([base + tile * BM, 0])
    most = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    sums = tl.zeros([BM, D], dtype=tl.float32)
    scale *= 1.44269504
    last = (tile + 1) * BM if CAUSAL else length
    for first in range(0, last, BN):
        scores = tl.dot(queries, k.load([base + first, 0]).T) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= first + keys[None, :], scores, -1.0e6)
        larger = tl.maximum(most, tl.max(scores, 1))
        weights = tl.math.exp2(scores - larger[:, None])
        shrink = tl.math.exp2(most - larger)
        total = total * shrink + tl.sum(weights, 1)
        sums = tl.dot(weights.to(v.dtype), v.load([base + first, 0]), sums * shrink[:, None])
        most = larger
    o.store([base + tile * BM, 0], (sums / total[:, None]).to(o.dtype))


@triton.jit
def attention_backward(q, k, v, go, gq, gk, gv, lse, delta, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """A program takes BN keys of a head, causal: dK and dV stay in registers, dQ is added in memory."""
    tile = tl.program_id(0)
    head = tl.program_id(1)
    base = head.to(tl.int64) * length * D
    keys = tile * BN + tl.arange(0, BN)
    lanes = tl.arange(0, D)
    at_keys = base + keys[:, None] * D + lanes[None, :]
    kt = tl.load(k + at_keys)
    vt = tl.load(v + at_keys)
    sk = tl.zeros([BN, D], dtype=tl.float32)
    sv = tl.zeros([BN, D], dtype=tl.float32)
    for first in range(tile * BN // BM * BM, length, BM):
        rows = first + tl.arange(0, BM)
        at_rows = base + rows[:, None] * D + lanes[None, :]
        queries = tl.load(q + at_rows)
        gradient = tl.load(go + at_rows)
        scores = tl.dot(queries, tl.trans(kt)) * (scale * 1.44269504)
        weights = tl.math.exp2(scores - tl.load(lse + head * length + rows)[:, None])
        weights = tl.where(rows[:, None] >= keys[None, :], weights, 0.0)
        sv = tl.dot(tl.trans(weights.to(q.dtype.element_ty)), gradient, sv)
        slope = tl.dot(gradient, tl.trans(vt)) - tl.load(delta + head * length + rows)[:, None]
        slope = (weights * slope * scale).to(q.dtype.element_ty)
        sk = tl.dot(tl.trans(slope), queries, sk)
        tl.atomic_add(gq + at_rows, tl.dot(slope, kt), sem="relaxed")
    tl.store(gk + at_keys, sk.to(k.dtype.element_ty))
    tl.store(gv + at_keys, sv.to(v.dtype.element_ty))


INSTANCES = [
    instance("attention_64_causal", attention, "*fp16 *fp16 *fp16 *fp16 *fp32 fp32 i32", warps=4, stages=3, BM=128, BN=64, D=64, CAUSAL=True),
    instance("attention_128", attention, "*bf16 *bf16 *bf16 *bf16 *fp32 fp32 i32", warps=8, stages=3, BM=128, BN=64, D=128, CAUSAL=False),
    instance("attention_by_maps", attention_by_maps, "map<fp16[128,128]> map<fp16[64,128]> map<fp16[64,128]> map<fp16[128,128]> fp32 i32",
             warps=8, stages=3, BM=128, BN=64, D=128, CAUSAL=True),
    instance("attention_backward", attention_backward, "*fp16 *fp16 *fp16 *fp16 *fp32 *fp16 *fp16 *fp32 *fp32 fp32 i32",
             warps=8, stages=2, BM=64, BN=128, D=64),
]
