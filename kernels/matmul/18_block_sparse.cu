// Matrix product, step 18: blocks of A that are zero are skipped.
//
// Shows   A has a word a block of 128 x 64: what is not below `keep` counts as zero. A block of threads lists the
//         blocks of its row of A that are left, then copies and multiplies those only: less of A and B is read and
//         fewer products are made, in proportion where rows have as many blocks left; the longest row decides the end.
// Bound   the tensor pipe; a few long rows at the end.
// Launch  block 128, grid (ceil(n / 128), ceil(m / 128)); 96 KiB of dynamic shared memory.
// Args    a[m][k], blocks[ceil(m / 128)][ceil(k / 64)] 32-bit, b[k][n], c[m][n], m, n, k, keep; row-major fp16, sums in
//         fp32.

#include "../common/product.cuh"

using Block = Product<__half, 128, 128, 64, 64, 64, 3>;
constexpr int kMostBlocks = 1024;

// The numbers of the blocks below keep, in order, into `list`; every thread gets how many there are.
__device__ __forceinline__ int list_blocks(int* list, const unsigned* __restrict__ blocks, int count, unsigned keep) {
  __shared__ int kept;
  if (threadIdx.x < 32) {
    int before = 0;
    for (int first = 0; first < count; first += 32) {
      const int block = first + threadIdx.x;
      const bool is_kept = block < count && blocks[block] < keep;
      const unsigned all = __ballot_sync(0xffffffff, is_kept);
      if (is_kept) list[before + __popc(all & ((1u << threadIdx.x) - 1))] = block;
      before += __popc(all);
    }
    if (threadIdx.x == 0) kept = before;
  }
  __syncthreads();
  return kept;
}

template <bool kVector>
__device__ __forceinline__ void product(const int* list, int count, const __half* __restrict__ a,
                                        const __half* __restrict__ b, __half* __restrict__ c, int m, int n, int k) {
  extern __shared__ __align__(128) char shared[];
  const int row0 = blockIdx.y * Block::kBlockM, col0 = blockIdx.x * Block::kBlockN;
  Block block(shared);
  Block::Sources from(a, b, row0, col0, m, n, k);
  int at = 0, next = 1;
  if (count > 0) from.advance(at = list[0]);
  block.multiply<kVector>(from, count, [&](Block::Sources& s) {
    if (next == count) return;  // the copies are all under way
    const int to = list[next++];
    s.advance(to - at);
    at = to;
  });
  block.store<kVector>(c, row0, col0, m, n);
}

extern "C" __global__ void __launch_bounds__(Block::kThreads)
    tensor_block_sparse_f16(const __half* __restrict__ a, const unsigned* __restrict__ blocks,
                            const __half* __restrict__ b, __half* __restrict__ c, int m, int n, int k, int keep) {
  __shared__ int list[kMostBlocks];
  const int count = (k + Block::kBlockK - 1) / Block::kBlockK;
  if (count > kMostBlocks) __trap();
  const int kept = list_blocks(list, blocks + blockIdx.y * count, count, keep);
  if (all_rows_are_chunks<Block>(a, b, c, n, k)) {
    product<true>(list, kept, a, b, c, m, n, k);
  } else {
    product<false>(list, kept, a, b, c, m, n, k);
  }
}
