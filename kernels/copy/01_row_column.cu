// Copy, step 1: a matrix copied by warps that walk along its rows, and by warps that walk down its columns.
//
// Shows   coalescing: along a row a warp's load touches 4 sectors and uses all of each; down a column 32 sectors, 4 bytes of
//         each, and as many DRAM burst sections.
// Bound   HBM along rows; sectors (L1, L2, then DRAM bursts) down columns.
// Launch  block (32, 8); copy_along_rows: grid (ceil(cols / 32), ceil(rows / 8)); copy_down_columns: grid (ceil(rows / 32),
//         ceil(cols / 8)), x is the row.
// Args    in, out [rows][cols] fp32, rows, cols.

extern "C" __global__ void copy_along_rows(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) out[row * cols + col] = in[row * cols + col];
}

extern "C" __global__ void copy_down_columns(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) out[row * cols + col] = in[row * cols + col];
}
