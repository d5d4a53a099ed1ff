// What joins the blocks of a cluster costs: its barrier, loads and arrivals from SM to SM, copies to several blocks.
// Quantities: kernels/micro/quantities.yaml.

#include "../common/cluster.cuh"
#include "micro.cuh"

// All warps meet; `relaxed` orders no memory, `fenced` does.
extern "C" __global__ void meet_relaxed(unsigned* out, int iterations) {
  COUNTED_LOOP(iterations) {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  }
  out[thread_of_grid()] = iterations;
}
extern "C" __global__ void meet_fenced(unsigned* out, int iterations) {
  COUNTED_LOOP(iterations) cluster_sync();
  out[thread_of_grid()] = iterations;
}

// One thread chases a pointer through shared memory of the block `away` ranks on; 0 is its own by the same way.
extern "C" __global__ void __launch_bounds__(32) far_chase(unsigned* out, int iterations, int away) {
  __shared__ unsigned words[32];
  words[threadIdx.x] = 0;
  int size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  cluster_sync();
  const unsigned* far = in_block(words, (cluster_rank() + away) % size);
  unsigned at = 0;
  if (threadIdx.x == 0 && cluster_rank() == 0) {
    COUNTED_LOOP(iterations) {
      REPEAT_8({
        unsigned next;
        asm volatile("ld.volatile.u32 %0, [%1];" : "=r"(next) : "l"(far + at));
        at = next;
      })
    }
  }
  out[thread_of_grid()] = at;
  cluster_sync();
}

// Every warp loads, or stores, 16 bytes a lane of the next block's shared memory.
extern "C" __global__ void far_loads(unsigned* out, int iterations) {
  extern __shared__ uint4 quads[];
  quads[threadIdx.x] = uint4{0, 0, 0, 0};
  int size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  cluster_sync();
  const uint4* far = in_block(quads + threadIdx.x, (cluster_rank() + 1) % size);
  unsigned sum = 0;
  COUNTED_LOOP(iterations) {
    REPEAT_8({
      uint4 v;
      asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(far));
      sum ^= mixed(v);
    })
  }
  out[thread_of_grid()] = sum;
  cluster_sync();
}
extern "C" __global__ void far_stores(unsigned* out, int iterations) {
  extern __shared__ uint4 quads[];
  int size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  cluster_sync();
  uint4* far = in_block(quads + threadIdx.x, (cluster_rank() + 1) % size);
  COUNTED_LOOP(iterations) {
    REPEAT_8(asm volatile("st.volatile.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(far), "r"(iteration) : "memory");)
  }
  cluster_sync();
  out[thread_of_grid()] = quads[threadIdx.x].x;
}

// Blocks 0 and 1 hand over to each other by barriers in shared memory.
extern "C" __global__ void __launch_bounds__(32) far_ping_pong(unsigned* out, int iterations) {
  __shared__ Barrier turn;
  if (threadIdx.x == 0) turn.init(1);
  cluster_sync();
  const int rank = cluster_rank();
  int parity = 0;
  if (threadIdx.x == 0) {
    if (rank == 0) arrive_in_block(turn, 1);
    COUNTED_LOOP(iterations) {
      wait_for_cluster(turn, parity);
      arrive_in_block(turn, rank ^ 1);
      parity ^= 1;
    }
  }
  out[thread_of_grid()] = parity;
  cluster_sync();
}

// Boxes of 64 x 64 16-bit elements, 4 under way, each to all blocks of the cluster; every block sends its share of them.
extern "C" __global__ void __launch_bounds__(32) multicast_boxes(const __grid_constant__ CUtensorMap map, unsigned* out,
                                                                int iterations, int step, int rows) {
  constexpr int kAhead = 4, kRows = 64, kBytes = kRows * kSwizzledRow;
  extern __shared__ __align__(1024) char shared[];
  __shared__ Barrier full[kAhead], empty[kAhead];
  int size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  const int rank = cluster_rank();
  if (threadIdx.x == 0) {
    for (int i = 0; i < kAhead; ++i) {
      full[i].init(1);
      empty[i].init(size);
    }
    publish_to_async();
  }
  cluster_sync();
  int row = (blockIdx.x / size * kRows + rank * kRows / size) % rows;
  if (threadIdx.x == 0) {
    int slot = 0, parity = 0;
    const auto fetch = [&](int i) {
      full[i].expect(kBytes);
      load_box_to((1 << size) - 1, shared + i * kBytes + rank * (kBytes / size), map, 0, row, full[i]);
      row += step;
      if (row >= rows) row -= rows;
    };
    for (int i = 0; i < kAhead; ++i) fetch(i);
    COUNTED_LOOP(iterations) {
      wait_for_cluster(full[slot], parity);
      for (int other = 0; other < size; ++other) arrive_in_block(empty[slot], other);
      wait_for_cluster(empty[slot], parity);
      fetch(slot);
      if (++slot == kAhead) slot = 0, parity ^= 1;
    }
    for (int i = 0; i < kAhead; ++i) {
      wait_for_cluster(full[slot], parity);
      if (++slot == kAhead) slot = 0, parity ^= 1;
    }
  }
  out[thread_of_grid()] = row;
  cluster_sync();
}
