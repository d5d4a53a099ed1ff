// Matrix product, step 14: k cut into parts, for products with few tiles and much k.
//
// Shows   512 x 512 is eight tiles of 128 x 256: 124 of 132 SMs have nothing to do. With s parts there are s times as
//         many blocks, each with its sums of a part in fp32; a second kernel adds them up, always in the same order.
//         The price is 4 (2 s + 1) bytes an element of C, and another launch.
// Bound   as step 12 while parts are long; then latency and the sums' way through L2.
// Launch  tensor_split_f16: block 256, grid (ceil(n / 256), ceil(m / 128), parts); 96 KiB of dynamic shared memory.
//         sum_parts: block 256, grid ceil(m n / 256).
// Args    a[m][k], b[k][n], sums[parts][m][n] fp32, m, n, k; then sums, c[m][n], m n, parts; row-major fp16.

#include "../common/product.cuh"

using Block = Product<__half, 128, 256, 32, 64, 64, 4>;

template <bool kVector>
__device__ __forceinline__ void part_of_product(const __half* __restrict__ a, const __half* __restrict__ b,
                                                float* __restrict__ sums, int m, int n, int k) {
  extern __shared__ __align__(128) char shared[];
  const int row0 = blockIdx.y * Block::kBlockM, col0 = blockIdx.x * Block::kBlockN;
  const int tiles = (k + Block::kBlockK - 1) / Block::kBlockK;
  const int a_part = (tiles + gridDim.z - 1) / gridDim.z, first = blockIdx.z * a_part;
  Block block(shared);
  Block::Sources from(a, b, row0, col0, m, n, k);
  from.advance(first);
  block.multiply<kVector>(from, min(a_part, tiles - first));  // none where the parts before took all
  block.store<kVector>(sums + static_cast<int64_t>(blockIdx.z) * m * n, row0, col0, m, n);
}

extern "C" __global__ void __launch_bounds__(256)
    tensor_split_f16(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ sums, int m, int n,
                     int k) {
  if (all_rows_are_chunks<Block>(a, b, sums, n, k) && n % 8 == 0) {
    part_of_product<true>(a, b, sums, m, n, k);
  } else {
    part_of_product<false>(a, b, sums, m, n, k);
  }
}

extern "C" __global__ void sum_parts(const float* __restrict__ sums, __half* __restrict__ c, int elements, int parts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  float sum = 0;
  for (int part = 0; part < parts; ++part) sum += sums[static_cast<int64_t>(part) * elements + i];
  c[i] = __float2half_rn(sum);
}
