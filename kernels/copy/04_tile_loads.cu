// Copy, step 4: 32 x 32 tiles of a matrix whose rows are `pitch` elements apart; each block sums its tile's columns.
//
// Shows   misaligned tiles: with pitch = cols = 4096 each tile row is one 128-byte line; one extra column shifts every row by
//         4 bytes, so that a tile row straddles two lines and 5 sectors; a pitch padded to a multiple of 32 undoes it.
// Bound   HBM and L2 in sectors.
// Launch  block (32, 32), grid (ceil(cols / 32), ceil(rows / 32)); 4 KiB of static shared memory.
// Args    in[rows][pitch], sums[ceil(rows / 32)][cols] fp32, rows, cols, pitch.

constexpr int kTile = 32;

extern "C" __global__ void tile_column_sums(const float* __restrict__ in, float* __restrict__ sums, int rows, int cols,
                                            int pitch) {
  __shared__ float tile[kTile][kTile];

  const int row = blockIdx.y * kTile + threadIdx.y;
  const int col = blockIdx.x * kTile + threadIdx.x;
  tile[threadIdx.y][threadIdx.x] = row < rows && col < cols ? in[row * pitch + col] : 0.0f;
  __syncthreads();

  if (threadIdx.y != 0 || col >= cols) return;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kTile; ++i) sum += tile[i][threadIdx.x];
  sums[blockIdx.y * cols + col] = sum;
}
