"""Element-wise kernels in Triton: a block of programs takes BLOCK elements, a mask ends the last one."""
import triton
import triton.language as tl

from instances import instance


@triton.jit
def bias_gelu(x, bias, y, n, columns, BLOCK: tl.constexpr):
    """y = gelu(x + bias), the bias one a column, gelu by the error function."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside).to(tl.float32) + tl.load(bias + at % columns, mask=inside).to(tl.float32)
    value = 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))
    tl.store(y + at, value.to(tl.bfloat16), mask=inside)


@triton.jit
def dropout_add(x, residual, y, n, keep, seed, BLOCK: tl.constexpr):
    """y = residual + x / keep where a Philox number of the element is below keep, residual elsewhere."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    kept = tl.rand(seed, at) < keep
    value = tl.where(kept, tl.load(x + at, mask=inside).to(tl.float32) / keep, 0.0)
    tl.store(y + at, (value + tl.load(residual + at, mask=inside).to(tl.float32)).to(tl.float16), mask=inside)


@triton.jit
def rotary(x, cosine, sine, y, heads, HALF: tl.constexpr):
    """Turns the two halves of each head by the angles of its position: a program a position and head."""
    position = tl.program_id(0)
    head = tl.program_id(1)
    lane = tl.arange(0, HALF)
    first = (position * heads + head) * 2 * HALF + lane
    a = tl.load(x + first).to(tl.float32)
    b = tl.load(x + first + HALF).to(tl.float32)
    c = tl.load(cosine + position * HALF + lane)
    s = tl.load(sine + position * HALF + lane)
    tl.store(y + first, (a * c - b * s).to(tl.bfloat16))
    tl.store(y + first + HALF, (a * s + b * c).to(tl.bfloat16))


INSTANCES = [
    instance("bias_gelu", bias_gelu, "*bf16 *bf16 *bf16 i32 i32", warps=4, BLOCK=1024),
    instance("dropout_add", dropout_add, "*fp16 *fp16 *fp16 i32 fp32 i32", warps=8, BLOCK=2048),
    instance("rotary", rotary, "*bf16 *fp32 *fp32 *bf16 i32", warps=1, HALF=64),
]
