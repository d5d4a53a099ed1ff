// Kernels that never end. endless.cubin: compile_with_lines() of traces/build.py, for sm_90.
extern "C" __global__ void waits_for_flag(volatile int* flag, int* out) {
  while (*flag == 0) {
  }
  out[threadIdx.x] = 1;
}
extern "C" __global__ void loops(int* out) {
  int v = threadIdx.x;
  for (;;) {
    v = v * 3 + 1;
    ((volatile int*)out)[threadIdx.x] = v;
  }
}
// Half of the warps wait at the barrier for the others, which wait for the flag.
extern "C" __global__ void half_waits(volatile int* flag, int* out) {
  if (threadIdx.x >= 64)
    while (*flag == 0) {
    }
  __syncthreads();
  out[threadIdx.x] = 1;
}
