// Copy, step 5: transpose through a shared tile, without and with a column of padding.
//
// Shows   bank conflicts: the tile is written by rows and read by columns; at a pitch of 32 all lanes of a warp meet in one
//         bank (32 wavefronts a request), at 33 each has its own.
// Bound   the shared-memory pipe without padding, HBM with it.
// Launch  block (32, 8), grid (ceil(cols / 32), ceil(rows / 32)); 4 KiB of static shared memory.
// Args    in[rows][cols], out[cols][rows] fp32, rows, cols.

constexpr int kTile = 32;
constexpr int kRowsAtOnce = 8;

template <int kPitch>
__device__ void transpose(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  __shared__ float tile[kTile][kPitch];

  const int row0 = blockIdx.y * kTile;
  const int col0 = blockIdx.x * kTile;
  const int x = threadIdx.x;
#pragma unroll
  for (int i = 0; i < kTile; i += kRowsAtOnce) {
    const int y = threadIdx.y + i;
    if (row0 + y < rows && col0 + x < cols) tile[y][x] = in[(row0 + y) * cols + col0 + x];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTile; i += kRowsAtOnce) {
    const int y = threadIdx.y + i;
    if (col0 + y < cols && row0 + x < rows) out[(col0 + y) * rows + row0 + x] = tile[x][y];
  }
}

extern "C" __global__ void transpose_unpadded(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  transpose<kTile>(in, out, rows, cols);
}

extern "C" __global__ void transpose_padded(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  transpose<kTile + 1>(in, out, rows, cols);
}
