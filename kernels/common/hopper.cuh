// What sm_90 adds for products of tiles, in words of one line each: barriers in shared memory that count arrivals and bytes,
// copies of boxes by the tensor memory accelerator (TMA), and products of a warpgroup (four warps) that read their factors
// from shared memory and run beside it.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

__device__ __forceinline__ uint32_t shared_word_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// A barrier (mbarrier): a phase ends when its arrivals and the bytes announced to it are complete. Phases alternate in parity.
struct Barrier {
  uint64_t state;

  __device__ __forceinline__ void init(int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_word_address(this)), "r"(arrivals) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_word_address(this)) : "memory");
  }
  // Arrives, and has the phase wait for so many bytes.
  __device__ __forceinline__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_word_address(this)), "r"(bytes)
                 : "memory");
  }
  // Waits for the end of a phase of this parity.
  __device__ __forceinline__ void wait(int parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again_%=:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again_%=;\n"
        "}\n" ::"r"(shared_word_address(this)),
        "r"(parity)
        : "memory");
  }
};

// What threads wrote to shared memory is seen by TMA and warpgroup products; so are barriers just initialised.
__device__ __forceinline__ void publish_to_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// One lane of the warp says yes.
__device__ __forceinline__ bool elected() {
  uint32_t yes;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}\n" : "=r"(yes));
  return yes != 0;
}

__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// The box at (x, y), x innermost, to shared memory; its bytes are counted at the barrier, those beyond the matrix too.
__device__ __forceinline__ void load_box(void* to, const CUtensorMap& map, int x, int y, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_word_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_word_address(&barrier))
      : "memory");
}
// The same of several matrices behind one another: the box at (x, y) of the z-th.
__device__ __forceinline__ void load_box(void* to, const CUtensorMap& map, int x, int y, int z, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
          shared_word_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_word_address(&barrier))
      : "memory");
}
// A box from shared memory; what lies beyond the matrix is dropped.
__device__ __forceinline__ void store_box(const CUtensorMap& map, int x, int y, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x),
               "r"(y), "r"(shared_word_address(from))
               : "memory");
}
__device__ __forceinline__ void store_box(const CUtensorMap& map, int x, int y, int z, const void* from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(x),
               "r"(y), "r"(z), "r"(shared_word_address(from))
               : "memory");
}
__device__ __forceinline__ void commit_boxes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until all groups of boxes but the last kLeft have been read from shared memory.
template <int kLeft = 0>
__device__ __forceinline__ void wait_for_boxes() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
// ... and until this thread sees them in memory.
template <int kLeft = 0>
__device__ __forceinline__ void wait_for_written_boxes() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kLeft) : "memory");
}
// Adds a box from shared memory to what is there.
__device__ __forceinline__ void add_box(const CUtensorMap& map, int x, int y, const void* from) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
               "r"(x), "r"(y), "r"(shared_word_address(from))
               : "memory");
}

// Registers of a warpgroup's threads: what a producer gives up, consumers take.
template <int kRegisters>
__device__ __forceinline__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// The warp is one of `count` / 32 that come to named barrier `id`, and does not wait there.
__device__ __forceinline__ void announce(int id, int count) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory"); }
// The threads of `count` / 32 warps meet at named barrier `id`.
__device__ __forceinline__ void meet(int id, int count) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory"); }

// Factors in shared memory, in rows of 128 bytes whose 16-byte chunks are exchanged: chunk c of row r lies at c ^ r % 8, so
// that neither rows nor columns of chunks meet in a bank. TMA writes them so, with CU_TENSOR_MAP_SWIZZLE_128B.
constexpr int kSwizzledRow = 128, kSwizzledAtom = 8 * kSwizzledRow;
__device__ __forceinline__ int swizzled(int row, int chunk) { return row * kSwizzledRow + ((chunk ^ (row % 8)) * 16); }

// A factor as wgmma is told of it: where it starts, and two strides. Along k (rows are rows of the matrix, k runs along
// them): `step` between groups of 8 rows. Across k (rows run along the result): `step` between groups of 8 k, `panel` from 64
// elements to the next 64.
__device__ __forceinline__ uint64_t factor_along_k(const void* start) {
  return (shared_word_address(start) & 0x3ffff) >> 4 | uint64_t{1} << 16 | uint64_t{kSwizzledAtom >> 4} << 32 |
         uint64_t{1} << 62;
}
__device__ __forceinline__ uint64_t factor_across_k(const void* start, int panel) {
  return (shared_word_address(start) & 0x3ffff) >> 4 | uint64_t(panel >> 4) << 16 | uint64_t{kSwizzledAtom >> 4} << 32 |
         uint64_t{1} << 62;
}
// So many bytes further.
__device__ __forceinline__ uint64_t further(uint64_t factor, int bytes) { return factor + (bytes >> 4); }

// Registers and shared memory written before are seen by the products that follow.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most kLeft groups are under way.
template <int kLeft = 0>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

#define SUMS_8(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS_32(d, i) SUMS_8(d, i), SUMS_8(d, i + 8), SUMS_8(d, i + 16), SUMS_8(d, i + 24)
#define SUMS_64(d) SUMS_32(d, 0), SUMS_32(d, 32)
#define SUMS_128(d) SUMS_32(d, 0), SUMS_32(d, 32), SUMS_32(d, 64), SUMS_32(d, 96)

// 64 x 128 of C += 64 x 16 of A, along k, times 16 x 128 of B, across k. `add` 0: what the sums held does not count.
#define PRODUCT_128(type, sums, a, b, add) \
  asm volatile( \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63" \
      "}, %64, %65, p, 1, 1, 0, 1;\n}\n" \
      : SUMS_64(sums) \
      : "l"(a), "l"(b), "r"(add))

// 64 x 256 of C += 64 x 16 of A, along k, times 16 x 256 of B, across k. `add` 0: what the sums held does not count.
#define PRODUCT_256(type, sums, a, b, add) \
  asm volatile( \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127" \
      "}, %128, %129, p, 1, 1, 0, 1;\n}\n" \
      : SUMS_128(sums) \
      : "l"(a), "l"(b), "r"(add))

// 64 x 64 or 64 x 128 of C += 64 x 16 of A, in registers, times as many columns of B, across k.
#define HELD_PRODUCT_64(type, sums, a, b, add) \
  asm volatile( \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31" \
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}\n" \
      : SUMS_32(sums, 0) \
      : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b), "r"(add))

#define HELD_PRODUCT_128(type, sums, a, b, add) \
  asm volatile( \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63" \
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n" \
      : SUMS_64(sums) \
      : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b), "r"(add))

template <class T>
__device__ __forceinline__ void multiply(float (&sums)[64], uint64_t a, uint64_t b, int add) {
  if constexpr (sizeof(T) == 2 && __is_same(T, __half)) PRODUCT_128("f16", sums, a, b, add);
  else PRODUCT_128("bf16", sums, a, b, add);
}
template <class T>
__device__ __forceinline__ void multiply(float (&sums)[128], uint64_t a, uint64_t b, int add) {
  if constexpr (sizeof(T) == 2 && __is_same(T, __half)) PRODUCT_256("f16", sums, a, b, add);
  else PRODUCT_256("bf16", sums, a, b, add);
}
template <class T>
__device__ __forceinline__ void multiply(float (&sums)[32], const uint32_t* a, uint64_t b, int add) {
  if constexpr (__is_same(T, __half)) HELD_PRODUCT_64("f16", sums, a, b, add);
  else HELD_PRODUCT_64("bf16", sums, a, b, add);
}
template <class T>
__device__ __forceinline__ void multiply(float (&sums)[64], const uint32_t* a, uint64_t b, int add) {
  if constexpr (__is_same(T, __half)) HELD_PRODUCT_128("f16", sums, a, b, add);
  else HELD_PRODUCT_128("bf16", sums, a, b, add);
}

__device__ __forceinline__ uint32_t pack(float low, float high, __half) {
  const __half2 both = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(both);
}
__device__ __forceinline__ uint32_t pack(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(both);
}

// The sums of a warpgroup, 64 rows of C from (row, col) on: a lane has two neighbours of every eight columns, in two rows.
template <class T, int kSums>
__device__ __forceinline__ void store_sums(T* c, int row, int col, int m, int n, const float (&sums)[kSums]) {
  const int lane = threadIdx.x % 32;
  row += threadIdx.x % 128 / 32 * 16 + lane / 4;
  col += lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < kSums; i += 4, col += 8) {
    if (col >= n) break;
    if (row < m) *reinterpret_cast<uint32_t*>(c + int64_t{row} * n + col) = pack(sums[i], sums[i + 1], T{});
    if (row + 8 < m) *reinterpret_cast<uint32_t*>(c + int64_t{row + 8} * n + col) = pack(sums[i + 2], sums[i + 3], T{});
  }
}

// Four 8 x 8 matrices of 16-bit elements to shared memory; lane 8 i + r says where row r of the i-th lies.
__device__ __forceinline__ void store_matrices(void* row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_word_address(row)), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

// 64 x 64 of a warpgroup's sums, `first` the first of the lane's, to rows of shared memory as TMA takes them.
template <class T, int kSums>
__device__ __forceinline__ void stage_sums(char* to, const float (&sums)[kSums], int first) {
  const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
  for (int i = 0; i < 32; i += 8) {
    const float* s = sums + first + i;
    store_matrices(to + swizzled(row, i / 4 + lane / 16), pack(s[0], s[1], T{}), pack(s[2], s[3], T{}), pack(s[4], s[5], T{}),
                   pack(s[6], s[7], T{}));
  }
}
