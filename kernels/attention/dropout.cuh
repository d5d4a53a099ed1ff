// Dropout from a counter: whether an element of the weights is kept follows from its head, row and column, so that the
// forward and the backward pass, fused or not, agree without a mask in memory.
#pragma once

#include <cstdint>

// Two rounds of xor-shift and multiplication: every bit of the result depends on every bit of x.
__device__ __forceinline__ uint32_t mixed(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

struct Dropout {
  uint32_t key;    // of the head
  uint32_t pairs;  // in a row
  uint32_t below;  // of 65536: dropped where 16 bits are below
  float kept_scale;

  __device__ __forceinline__ Dropout(int seed, int head, int length, int dropped) {
    key = mixed(static_cast<uint32_t>(seed) + 0x9e3779b9u * static_cast<uint32_t>(head));
    pairs = static_cast<uint32_t>(length + 1) / 2;
    below = static_cast<uint32_t>(dropped);
    kept_scale = 65536.0f / static_cast<float>(65536 - dropped);
  }

  // 16 bits for each of two neighbouring columns, the even one's lower.
  __device__ __forceinline__ uint32_t bits(int row, int col) const {
    return mixed(key ^ (static_cast<uint32_t>(row) * pairs + static_cast<uint32_t>(col) / 2));
  }
  __device__ __forceinline__ bool keeps(uint32_t bits, int col) const {
    return (col % 2 == 0 ? bits & 0xffffu : bits >> 16) >= below;
  }
};
