"""Matrix products in Triton: copies by cp.async or by TMA, products by wgmma, tiles in groups of rows for L2."""
import triton
import triton.language as tl

from instances import instance


@triton.jit
def tile_of(program, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Programs go down GROUP rows of tiles before they go on to the next column."""
    down = tl.cdiv(M, BM)
    across = tl.cdiv(N, BN)
    first = program // (GROUP * across) * GROUP
    rows = min(down - first, GROUP)
    within = program % (GROUP * across)
    return first + within % rows, within // rows


@triton.jit
def product(a, b, c, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
            SUM: tl.constexpr):
    """C = A B by tensors of pointers."""
    i, j = tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    rows = (i * BM + tl.arange(0, BM)) % M
    columns = (j * BN + tl.arange(0, BN)) % N
    depth = tl.arange(0, BK)
    a += rows[:, None] * lda + depth[None, :]
    b += depth[:, None] * ldb + columns[None, :]
    sums = tl.zeros((BM, BN), dtype=SUM)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a, mask=depth[None, :] < K - k * BK, other=0.0)
        right = tl.load(b, mask=depth[:, None] < K - k * BK, other=0.0)
        sums = tl.dot(left, right, sums)
        a += BK
        b += BK * ldb
    rows = i * BM + tl.arange(0, BM)
    columns = j * BN + tl.arange(0, BN)
    c += rows[:, None] * ldc + columns[None, :]
    tl.store(c, sums.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def split_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr):
    """A part of K a program, added to C by atomics."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.program_id(2) * BK + tl.arange(0, BK)
    a += rows[:, None] * K + depth[None, :]
    b += depth[:, None] * N + columns[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK * PARTS):
        sums = tl.dot(tl.load(a), tl.load(b), sums)
        a += BK * PARTS
        b += BK * PARTS * N
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], sums, sem="relaxed")


@triton.jit
def four_bit_product(a, packed, scales, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """C = A B, B in four bits: eight of a column in a word, a scale for each GROUP of them."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    shifts = depth % 8 * 4
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + depth[None, :], mask=rows[:, None] < M, other=0.0)
        words = tl.load(packed + (k + depth[:, None]) // 8 * N + columns[None, :])
        scale = tl.load(scales + k // GROUP * N + columns)
        right = ((words >> shifts[:, None]) & 15) - 8
        sums = tl.dot(left, (right.to(tl.float16) * scale[None, :]).to(tl.float16), sums)
    tl.store(c + rows[:, None] * N + columns[None, :], sums.to(tl.float16), mask=rows[:, None] < M)


@triton.jit
def product_by_maps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """C = A B by tensor maps: the tiles come and go by TMA."""
    i, j = tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(a.load([i * BM, k]), b.load([k, j * BN]), sums)
    c.store([i * BM, j * BN], sums.to(c.dtype))


@triton.jit
def persistent_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """As product_by_maps, a program an SM taking tile after tile; loads of the next begin under the last one's stores."""
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        i, j = tile_of(tile, M, N, BM, BN, GROUP)
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            sums = tl.dot(a.load([i * BM, k]), b.load([k, j * BN]), sums)
        c.store([i * BM, j * BN], sums.to(c.dtype))


POINTERS = "i32 i32 i32 i32 i32 i32"
INSTANCES = [
    instance("product_f16", product, f"*fp16 *fp16 *fp16 {POINTERS}", warps=8, stages=3, BM=128, BN=256, BK=64, GROUP=8, SUM=tl.float32),
    instance("product_f16_small", product, f"*fp16 *fp16 *fp16 {POINTERS}", warps=4, stages=4, BM=64, BN=64, BK=32, GROUP=8, SUM=tl.float32),
    instance("product_tf32", product, f"*fp32 *fp32 *fp32 {POINTERS}", warps=8, stages=3, BM=128, BN=128, BK=32, GROUP=8, SUM=tl.float32),
    instance("product_s8", product, f"*i8 *i8 *i32 {POINTERS}", warps=8, stages=3, BM=128, BN=128, BK=128, GROUP=8, SUM=tl.int32),
    instance("product_fp8", product, f"*fp8e4nv *fp8e4nv *fp16 {POINTERS}", warps=8, stages=3, BM=128, BN=128, BK=128, GROUP=8, SUM=tl.float32),
    instance("split_product", split_product, "*bf16 *bf16 *fp32 i32 i32 i32", warps=4, stages=3, BM=64, BN=128, BK=64, PARTS=8),
    instance("four_bit_product", four_bit_product, "*fp16 *i32 *fp16 *fp16 i32 i32 i32", warps=4, stages=3, BM=16, BN=128, BK=128, GROUP=128),
    instance("product_by_maps", product_by_maps, "map<fp16[128,64]> map<fp16[64,256]> map<fp16[128,256]> i32 i32 i32",
             warps=8, stages=3, BM=128, BN=256, BK=64, GROUP=8),
    instance("persistent_product", persistent_product, "map<bf16[128,64]> map<bf16[64,128]> map<bf16[128,128]> i32 i32 i32",
             warps=8, stages=4, BM=128, BN=128, BK=64, GROUP=8),
]
