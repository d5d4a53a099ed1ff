"""Kernels over rows in Triton: a program a row, the row in registers or taken in pieces."""
import triton
import triton.language as tl

from instances import instance


@triton.jit
def softmax(x, y, columns, stride, BLOCK: tl.constexpr):
    """A whole row in registers; lanes past its end hold -inf."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * stride + at, mask=inside, other=-float("inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row * stride + at, (value / tl.sum(value, axis=0)).to(tl.float16), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, y, mean, rstd, columns, eps, BLOCK: tl.constexpr):
    """Three passes over a row in pieces: mean, variance, result."""
    row = tl.program_id(0)
    x += row * columns
    y += row * columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
    average = tl.sum(total, axis=0) / columns
    square = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
        value = tl.where(at < columns, value - average, 0.0)
        square += value * value
    scale = 1 / tl.sqrt(tl.sum(square, axis=0) / columns + eps)
    tl.store(mean + row, average)
    tl.store(rstd + row, scale)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < columns
        value = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) - average) * scale
        value = value * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
        tl.store(y + at, value.to(tl.float16), mask=inside)


@triton.jit
def cross_entropy(logits, labels, losses, columns, BLOCK: tl.constexpr):
    """The loss of a row of logits against its label: maximum and sum kept while the row streams by."""
    row = tl.program_id(0)
    logits += row.to(tl.int64) * columns
    most = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(logits + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(most, value)
        total = total * tl.exp(most - larger) + tl.exp(value - larger)
        most = larger
    highest = tl.max(most, axis=0)
    total = tl.sum(total * tl.exp(most - highest), axis=0)
    label = tl.load(labels + row)
    tl.store(losses + row, tl.log(total) + highest - tl.load(logits + label).to(tl.float32))


@triton.jit
def scan(x, y, n, BLOCK: tl.constexpr):
    """The running sum within each block of elements."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + at, tl.cumsum(value, axis=0), mask=at < n)


@triton.jit
def best_of(x, y, which, columns, BLOCK: tl.constexpr):
    """The largest of a row and where it stands."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    most, where = tl.max(value, axis=0, return_indices=True)
    tl.store(y + row, most)
    tl.store(which + row, where)


INSTANCES = [
    instance("softmax", softmax, "*fp16 *fp16 i32 i32", warps=8, BLOCK=4096),
    instance("layer_norm", layer_norm, "*fp16 *fp32 *fp32 *fp16 *fp32 *fp32 i32 fp32", warps=4, BLOCK=1024),
    instance("cross_entropy", cross_entropy, "*bf16 *i32 *fp32 i32", warps=8, BLOCK=2048),
    instance("scan", scan, "*fp32 *fp32 i32", warps=4, BLOCK=2048),
    instance("best_of", best_of, "*fp32 *fp32 *i32 i32", warps=4, BLOCK=1024),
]
