// Four neighbours of one row of a row-major matrix, zero (or not written) outside it. With `kVector` they are one 16-byte
// access, which asks that `cols` is a multiple of 4 and the matrix is aligned; without, four guarded accesses.
#pragma once

__device__ inline bool rows_are_vectors(const void* matrix, int cols) {
  return cols % 4 == 0 && reinterpret_cast<unsigned long long>(matrix) % sizeof(float4) == 0;
}

template <bool kVector>
__device__ inline float4 load_four(const float* __restrict__ matrix, int row, int col, int rows, int cols) {
  float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row >= rows) return four;
  const float* from = matrix + row * cols + col;
  if constexpr (kVector) {
    if (col < cols) four = *reinterpret_cast<const float4*>(from);
  } else {
    if (col + 0 < cols) four.x = from[0];
    if (col + 1 < cols) four.y = from[1];
    if (col + 2 < cols) four.z = from[2];
    if (col + 3 < cols) four.w = from[3];
  }
  return four;
}

template <bool kVector>
__device__ inline void store_four(float* __restrict__ matrix, int row, int col, int rows, int cols, float4 four) {
  if (row >= rows) return;
  float* to = matrix + row * cols + col;
  if constexpr (kVector) {
    if (col < cols) *reinterpret_cast<float4*>(to) = four;
  } else {
    if (col + 0 < cols) to[0] = four.x;
    if (col + 1 < cols) to[1] = four.y;
    if (col + 2 < cols) to[2] = four.z;
    if (col + 3 < cols) to[3] = four.w;
  }
}
