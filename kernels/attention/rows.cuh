// Tiles of matrices whose rows are one head wide: [length][64] fp32, so every row is 16-byte aligned.
#pragma once

constexpr int kHead = 64;

// Copies rows first .. first + kRows - 1 of `from` to shared memory, 16 bytes at a time, zero past the last row.
template <int kRows, int kThreads, int kPitch>
__device__ inline void load_rows(float (&to)[kRows][kPitch], const float* __restrict__ from, int first, int length) {
#pragma unroll
  for (int i = 0; i < kRows * kHead / 4; i += kThreads) {
    const int row = (i + static_cast<int>(threadIdx.x)) / (kHead / 4);
    const int col = (i + static_cast<int>(threadIdx.x)) % (kHead / 4) * 4;
    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (first + row < length) four = *reinterpret_cast<const float4*>(from + (first + row) * kHead + col);
    *reinterpret_cast<float4*>(&to[row][col]) = four;
  }
}

__device__ inline float4 four_at(const float* shared) { return *reinterpret_cast<const float4*>(shared); }

__device__ inline float dot(float4 x, float4 y, float sum) {
  sum += x.x * y.x;
  sum += x.y * y.y;
  sum += x.z * y.z;
  sum += x.w * y.w;
  return sum;
}

// sum += weight * x
__device__ inline void add_scaled(float4& sum, float weight, float4 x) {
  sum.x += weight * x.x;
  sum.y += weight * x.y;
  sum.z += weight * x.z;
  sum.w += weight * x.w;
}
