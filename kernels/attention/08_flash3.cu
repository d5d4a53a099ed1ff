// Attention, step 8: FlashAttention-3's forward pass: one warp fetches, two warpgroups take turns. sm_90 alone.
//
// Shows   K and V come by TMA from a warp that does nothing else, S = Q K^T and P V are products of a warpgroup. Two ways
//         keep the tensor pipe busy under the softmax: within a group, S of the next keys is issued before P V of the last
//         ones and its softmax runs under that product; and the groups, 64 queries each, hand each other the right to issue
//         by named barriers, so that one group's exponentials run under the other's products. Masked keys come first, so
//         that the loop has none; causal blocks with the most keys go first. O leaves by TMA, cut at the sequence's end.
// Bound   tensor pipe; at heads of 64 the exponentials (MUFU), which take as long as the products.
// Launch  block 384, grid (ceil(length / 128), heads); 161 KiB of dynamic shared memory, 81 with heads of 64.
// Args    tensor maps of q and o [heads][length][64 or 128], k and v [heads / group][length][...], three dimensions each:
//         boxes of 64 x 128 x 1, of o 64 x 64 x 1, 128-byte swizzle; length, group, scale, causal: 0, or 1 to mask keys
//         after the query. fp16 or bf16.

#include "../common/hopper.cuh"

constexpr int kQueries = 128, kKeys = 128, kStages = 2, kConsumers = 2, kThreads = 128 * (1 + kConsumers);
constexpr int kPanelBytes = 128 * kSwizzledRow;  // 64 columns of 128 rows

// 64 x 128 of S += 64 x 16 of Q, along k, times 16 x 128 of K^T, along k too. `add` 0: what the sums held does not count.
#define SCORES_128(type, sums, a, b, add) \
  asm volatile( \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63" \
      "}, %64, %65, p, 1, 1, 0, 0;\n}\n" \
      : SUMS_64(sums) \
      : "l"(a), "l"(b), "r"(add))

template <class T>
__device__ __forceinline__ void scores(float (&sums)[64], uint64_t q, uint64_t k, int add) {
  if constexpr (__is_same(T, __half)) SCORES_128("f16", sums, q, k, add);
  else SCORES_128("bf16", sums, q, k, add);
}
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// What comes later stays behind what made this sum, which is stored for nobody: ptxas would wait for the product first, and
// make the weights that were to run under it behind it.
__device__ __forceinline__ void after(float sum, float* place) {
  asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(shared_word_address(place)), "f"(sum) : "memory");
}

// Of the four lanes that share a row.
template <class Combine>
__device__ __forceinline__ float of_row(float x, Combine combine) {
  x = combine(x, __shfl_xor_sync(~0u, x, 1));
  return combine(x, __shfl_xor_sync(~0u, x, 2));
}

// The softmax of two rows a lane, as far as it has come.
struct Rows {
  float most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};

  // S to P, relative to the greatest so far; `before`: what sums made before have to be multiplied with.
  __device__ __forceinline__ void weights(float (&s)[64], float scale, float (&before)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = most[half];
#pragma unroll
      for (int i = half * 2; i < 64; i += 4) top = fmaxf(top, fmaxf(s[i], s[i + 1]));
      top = of_row(top, [](float a, float b) { return fmaxf(a, b); });
      before[half] = exp2_of((most[half] - top) * scale);
      most[half] = top;
      const float shift = top * scale;
      float more = 0;
#pragma unroll
      for (int i = half * 2; i < 64; i += 4) {
        s[i] = exp2_of(fmaf(s[i], scale, -shift));
        s[i + 1] = exp2_of(fmaf(s[i + 1], scale, -shift));
        more += s[i] + s[i + 1];
      }
      sum[half] = sum[half] * before[half] + more;
    }
  }
};

template <int kSums>
__device__ __forceinline__ void multiply_rows(float (&o)[kSums], const float (&by)[2]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) o[i] *= by[i / 2 % 2];
}

// P as the words of a first factor: the sums of S lie as they are needed.
template <class T>
__device__ __forceinline__ void pack_weights(uint32_t (&p)[32], const float (&s)[64]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) p[i] = pack(s[2 * i], s[2 * i + 1], T{});
}

template <class T, int kHead>
__device__ __forceinline__ void attend(const CUtensorMap& q, const CUtensorMap& k, const CUtensorMap& v,
                                       const CUtensorMap& o, int length, int share, float scale, int causal) {
  constexpr int kPanels = kHead / 64, kTileBytes = kPanels * kPanelBytes;
  extern __shared__ char unaligned[];
  char* q_tile = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  char* k_ring = q_tile + kTileBytes;
  char* v_ring = k_ring + kStages * kTileBytes;
  __shared__ float unused[kThreads];
  __shared__ Barrier q_full, k_full[kStages], k_empty[kStages], v_full[kStages], v_empty[kStages];
  const int tile = causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x, head = blockIdx.y;
  const int tiles = causal ? tile + 1 : (length + kKeys - 1) / kKeys;
  if (threadIdx.x == 0) {
    q_full.init(1);
    for (int stage = 0; stage < kStages; ++stage) {
      k_full[stage].init(1);
      v_full[stage].init(1);
      k_empty[stage].init(kConsumers);
      v_empty[stage].init(kConsumers);
    }
    publish_to_async();
  }
  __syncthreads();

  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);  // so that the compiler sees one value a warp
  if (group == 0) {
    keep_registers<24>();
    if (threadIdx.x / 32 == 0 && elected()) {
      const auto fetch = [&](const CUtensorMap& map, char* to, int row, int of, Barrier& full) {
        full.expect(kTileBytes);
#pragma unroll
        for (int panel = 0; panel < kPanels; ++panel)
          load_box(to + panel * kPanelBytes, map, panel * 64, row, of, full);
      };
      fetch(q, q_tile, tile * kQueries, head, q_full);
      int stage = 0, parity = 0;
#pragma unroll 1
      for (int keys = tiles - 1; keys >= 0; --keys) {
        k_empty[stage].wait(parity ^ 1);
        fetch(k, k_ring + stage * kTileBytes, keys * kKeys, head / share, k_full[stage]);
        v_empty[stage].wait(parity ^ 1);
        fetch(v, v_ring + stage * kTileBytes, keys * kKeys, head / share, v_full[stage]);
        if (++stage == kStages) stage = 0, parity ^= 1;
      }
    }
    return;
  }

  take_registers<240>();
  const bool first_thread = threadIdx.x % 128 == 0;
  const int own = group, other = kConsumers + 1 - group, lane = threadIdx.x % 32;
  const int row = tile * kQueries + (group - 1) * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
  const char* q_rows = q_tile + (group - 1) * 64 * kSwizzledRow;
  float s[64], out[kHead / 2], before[2];
  uint32_t p[32];
  Rows rows;

  const auto begin_scores = [&](int stage) {
    const char* from = k_ring + stage * kTileBytes;
#pragma unroll
    for (int step = 0; step < kHead / 16; ++step) {
      const int at = step / 4 * kPanelBytes + step % 4 * 32;
      scores<T>(s, further(factor_along_k(q_rows), at), further(factor_along_k(from), at), step);
    }
    commit_products();
  };
  const auto begin_sums = [&](int stage, int add) {
    const uint64_t from = factor_across_k(v_ring + stage * kTileBytes, kPanelBytes);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step)
      multiply<T>(out, p + step * 4, further(from, step * 16 * kSwizzledRow), add + step);
    commit_products();
  };

  if (group == 2) announce(other, 256);  // the first group goes first
  q_full.wait(0);
  k_full[0].wait(0);
  meet(own, 256);
  begin_products();
  begin_scores(0);
  announce(other, 256);
  wait_for_products();
  if (first_thread) k_empty[0].arrive();
  const int first_key = (tiles - 1) * kKeys + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    const int key = first_key + i / 4 * 8 + i % 2, query = row + i / 2 % 2 * 8;
    if (key >= length || (causal && key > query)) s[i] = -INFINITY;
  }
  rows.weights(s, scale, before);
  pack_weights<T>(p, s);

  int stage = 0, parity = 0;
#pragma unroll 1
  for (int done = 0; done < tiles - 1; ++done) {
    const int v_stage = stage, v_parity = parity;
    if (++stage == kStages) stage = 0, parity ^= 1;
    k_full[stage].wait(parity);
    meet(own, 256);
    begin_products();
    begin_scores(stage);
    v_full[v_stage].wait(v_parity);
    begin_sums(v_stage, done);
    announce(other, 256);
    wait_for_products<1>();  // S
    if (first_thread) k_empty[stage].arrive();
    rows.weights(s, scale, before);
    after(rows.sum[0] + rows.sum[1], unused + threadIdx.x);
    wait_for_products();  // P V
    if (first_thread) v_empty[v_stage].arrive();
    multiply_rows(out, before);
    pack_weights<T>(p, s);
  }
  v_full[stage].wait(parity);
  begin_products();
  begin_sums(stage, tiles - 1);
  if (group == 1) meet(own, 256);  // the other's last turn has been announced
  wait_for_products();

  float by[2];
#pragma unroll
  for (int half = 0; half < 2; ++half)
    by[half] = __fdividef(1, of_row(rows.sum[half], [](float a, float b) { return a + b; }));
  multiply_rows(out, by);
  // This group's rows of Q have been read.
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel)
    stage_sums<T>(const_cast<char*>(q_rows) + panel * kPanelBytes, out, panel * 32);
  publish_to_async();
  meet(own + kConsumers, 128);
  if (!first_thread) return;
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel)
    store_box(o, panel * 64, tile * kQueries + (group - 1) * 64, head, q_rows + panel * kPanelBytes);
  commit_boxes();
  wait_for_boxes();  // shared memory goes with the block
}

#define FLASH3(NAME, T, HEAD)                                                                                            \
  extern "C" __global__ void __launch_bounds__(kThreads, 1)                                                              \
      NAME(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,                                 \
           const __grid_constant__ CUtensorMap v, const __grid_constant__ CUtensorMap o, int length, int group,          \
           float scale, int causal) {                                                                                    \
    attend<T, HEAD>(q, k, v, o, length, group, scale * 1.44269504f, causal);                                             \
  }
FLASH3(flash3_f16_64, __half, 64)
FLASH3(flash3_f16_128, __half, 128)
FLASH3(flash3_bf16_64, __nv_bfloat16, 64)
FLASH3(flash3_bf16_128, __nv_bfloat16, 128)
