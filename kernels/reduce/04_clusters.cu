// Reduction, step 4: blocks of a cluster that reach each other's shared memory. sm_90 alone.
//
// Shows   a histogram whose bins are spread over the blocks of a cluster, counted by atomics in shared memory of whichever
//         block has the bin; sums of rows that a cluster shares out, each block's part read by the first; a halo that
//         neighbours push to each other's shared memory, with a barrier that counts its bytes: word by word (st.async) and
//         by one bulk copy.
// Bound   the way from SM to SM; for the sums HBM.
// Launch  histogram_cluster, sum_rows_cluster: block 256, cluster of 2 to 8; grid any multiple of it, or a cluster a row.
//         shift_cluster, push_cluster: block 128, cluster of 2, grid n / 128. Bins: 4 * bins / cluster bytes of dynamic shared memory.
// Args    histogram_cluster: in[n] u32, out[bins] (zero before), n, bins, a multiple of the cluster. sum_rows_cluster:
//         in[rows][n] fp32, out[rows], n. shift_cluster, push_cluster: in[n], out[n] fp32; each pair of blocks turns its 256 elements round
//         by 128.

#include "../common/block.cuh"
#include "../common/cluster.cuh"

__device__ __forceinline__ int cluster_size() {
  int size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

extern "C" __global__ void histogram_cluster(const unsigned* __restrict__ in, unsigned* __restrict__ out, int n, int bins) {
  extern __shared__ unsigned part[];
  const int own = bins / cluster_size(), rank = cluster_rank();
  for (int i = threadIdx.x; i < own; i += blockDim.x) part[i] = 0;
  cluster_sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const int bin = in[i] % bins;
    atomicAdd(in_block(part, bin / own) + bin % own, 1u);
  }
  cluster_sync();
  for (int i = threadIdx.x; i < own; i += blockDim.x) atomicAdd(out + rank * own + i, part[i]);
}

extern "C" __global__ void sum_rows_cluster(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float sum;
  const int rank = cluster_rank(), size = cluster_size(), row = blockIdx.x / size;
  float own = 0;
  for (int i = rank * blockDim.x + threadIdx.x; i < n; i += size * blockDim.x) own += in[int64_t{row} * n + i];
  own = block_reduce(own, 0.0f, Add());
  if (threadIdx.x == 0) sum = own;
  cluster_sync();
  if (rank == 0 && threadIdx.x == 0) {
    float all = 0;
    for (int r = 0; r < size; ++r) all += *in_block(&sum, r);
    out[row] = all;
  }
  cluster_sync();  // nobody leaves while its part is still to be read
}

extern "C" __global__ void shift_cluster(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float from_other[128];
  __shared__ Barrier arrived;
  const int i = blockIdx.x * 128 + threadIdx.x, other = cluster_rank() ^ 1;
  if (threadIdx.x == 0) {
    arrived.init(1);
    arrived.expect(sizeof(from_other));
  }
  cluster_sync();
  asm volatile(
      "{\n.reg .b32 place, barrier;\n"
      "mapa.shared::cluster.u32 place, %0, %2;\n"
      "mapa.shared::cluster.u32 barrier, %1, %2;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [place], %3, [barrier];\n}\n" ::"r"(
          shared_word_address(from_other + threadIdx.x)),
      "r"(shared_word_address(&arrived)), "r"(other), "f"(in[i])
      : "memory");
  wait_for_cluster(arrived, 0);
  out[i] = from_other[threadIdx.x];
  cluster_sync();  // what a block sends arrives while it is there
}

extern "C" __global__ void push_cluster(const float* __restrict__ in, float* __restrict__ out) {
  __shared__ __align__(16) float own[128], from_other[128];
  __shared__ Barrier arrived;
  const int i = blockIdx.x * 128 + threadIdx.x, other = cluster_rank() ^ 1;
  own[threadIdx.x] = in[i];
  if (threadIdx.x == 0) {
    arrived.init(1);
    arrived.expect(sizeof(from_other));
  }
  publish_to_async();
  cluster_sync();
  if (threadIdx.x == 0) {
    asm volatile(
        "{\n.reg .b32 place, barrier;\n"
        "mapa.shared::cluster.u32 place, %0, %3;\n"
        "mapa.shared::cluster.u32 barrier, %1, %3;\n"
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [place], [%2], %4, [barrier];\n}\n" ::"r"(
            shared_word_address(from_other)),
        "r"(shared_word_address(&arrived)), "r"(shared_word_address(own)), "r"(other), "n"(sizeof(from_other))
        : "memory");
  }
  wait_for_cluster(arrived, 0);
  out[i] = from_other[threadIdx.x];
  cluster_sync();  // what a block sends arrives while it is there
}
