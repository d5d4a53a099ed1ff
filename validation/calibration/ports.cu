// Which SMs share a way to L2, and how wide it is, seen by SMs that read or write for as long as others do. On a machine with a GPU:
//   nvcc -O3 -std=c++17 -arch=sm_90 -o ports ports.cu && ./ports > ports.csv
// Writes go to 32 KB of each SM's own, over and over. TPCs without which two others, in both directions, write an eighth faster form
// a CPC with them. Then sets of SMs read 8 MB that all share (L2 merges some of that), read 256 MB, or write: all of a line with 16
// bytes or a word a thread, a sector of each line, a word of each. What was seen is in ports.csv:
//   cpc        its number, its TPCs
//   a way      the set of SMs, how many they are, bytes a cycle of all of them
//   ..._an_sm  of all SMs at once, bytes a cycle of each: in CPCs of two TPCs, in GPCs of eight TPCs and not in those, in others
//   wait_...   cycles until a store of a line is acknowledged (with a fence) or until a load has its data from L2, in SMs that write
//              besides or do not, while others write 16 bytes a thread
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

constexpr int kSms = 132, kTpcs = kSms / 2, kThreads = 1024, kRuns = 5;
constexpr long long kSpan = 60000;       // cycles that an SM goes on for
constexpr int kShared = 120 << 10;       // keeps blocks on SMs of their own
constexpr double kTogether = 0.12;       // faster without each other: TPCs of a CPC
constexpr unsigned kFew = 8u << 20, kMany = 256u << 20;

using Sms = std::vector<int>;

__device__ unsigned arrived;

/// All SMs that take part have come; the time then.
__device__ long long begin_together(unsigned sms) {
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1);
    while (*static_cast<volatile unsigned*>(&arrived) < sms) {}
  }
  __syncthreads();
  return clock64();
}

/// A piece of 16 bytes a thread.
__device__ void write_piece(uint4* mine, unsigned k, unsigned trip) {
  asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(mine + (k & 1) * kThreads + threadIdx.x), "r"(trip));
}

/// Trips of all warps of each SM that takes part, in the same time.
template <typename Work>
__device__ void go_on(const unsigned char* takes_part, unsigned* trips, unsigned sms, Work work) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (!takes_part[sm]) return;
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  const long long start = begin_together(sms);
  unsigned trip = 0;
  for (; clock64() - start < kSpan; ++trip) work(sm, trip);
  if (threadIdx.x % 32 == 0) atomicAdd(&count, trip);
  __syncthreads();
  if (threadIdx.x == 0) trips[sm] = count;
}

__global__ void __launch_bounds__(kThreads)
reads(const unsigned char* takes_part, unsigned* trips, unsigned sms, uint4* memory, unsigned bytes) {
  unsigned sum = 0;
  go_on(takes_part, trips, sms, [&](unsigned sm, unsigned trip) {
    uint4 v[4];
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      const uint4* at = memory + ((sm * 506816u + (trip * 4 + k) * kThreads + threadIdx.x) & (bytes / 16 - 1));
      asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w) : "l"(at));
    }
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  });
  if (sum == 12345) trips[kSms] = sum;
}

/// A thread stores 16 bytes, or `kLanes` of each warp a word.
template <int kLanes>
__global__ void __launch_bounds__(kThreads)
writes(const unsigned char* takes_part, unsigned* trips, unsigned sms, uint4* memory, unsigned) {
  go_on(takes_part, trips, sms, [&](unsigned sm, unsigned trip) {
    uint4* mine = memory + sm * 2048u;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      if (kLanes == 0)
        write_piece(mine, k, trip);
      else if (static_cast<int>(threadIdx.x % 32) < kLanes)
        asm volatile("st.global.u32 [%0], %1;" ::"l"(reinterpret_cast<unsigned*>(mine) + k * kThreads + threadIdx.x), "r"(trip));
    }
  });
}

/// Cycles that a warp waits for one access at a time: of SMs whose `takes_part` has bit 1, while the other warps of those with bit 0
/// write as writes<0> does.
template <bool kStore>
__global__ void __launch_bounds__(kThreads) waits(const unsigned char* takes_part, unsigned* cycles, unsigned sms, uint4* memory, unsigned) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const unsigned char part = takes_part[sm];
  if (!part) return;
  const long long start = begin_together(sms);
  if (threadIdx.x >= 32) {
    uint4* mine = memory + sm * 2048u;
    if (part & 1)
      for (unsigned trip = 0; clock64() - start < kSpan; ++trip)
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) write_piece(mine, k, trip);
    return;
  }
  if (!(part & 2)) return;
  unsigned count = 0, at = sm * 977;
  long long waited = 0;
  while (clock64() - start < kSpan) {
    at = at * 1664525u + 1013904223u;
    uint4* there = memory + (8u << 20) / 16 + ((at >> 8) & ((8u << 20) / 128 - 1)) * 8u;
    const long long begin = clock64();
    if (kStore) {
      if (threadIdx.x < 8) asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(there + threadIdx.x), "r"(at) : "memory");
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
    } else {
      unsigned word;
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(word) : "l"(there + threadIdx.x % 8) : "memory");
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(0), "r"(word) : "memory");  // waits for it
    }
    waited += clock64() - begin;
    ++count;
  }
  if (threadIdx.x == 0) cycles[sm] = static_cast<unsigned>(waited / count);
}

using Kernel = void (*)(const unsigned char*, unsigned*, unsigned, uint4*, unsigned);
struct Way {
  const char* name;
  Kernel kernel;
  int bytes;  // of a warp's trip
  unsigned footprint;
};
const Way kWays[] = {{"read_l2", reads, 2048, kFew},         {"read_dram", reads, 2048, kMany},        {"write_16_bytes", writes<0>, 2048, 0},
                     {"write_words", writes<32>, 512, 0},    {"write_sectors", writes<8>, 128, 0},     {"write_a_word", writes<1>, 16, 0}};
const Way& kWrites = kWays[2];

// `bytes` a trip so that rates() says cycles.
const Way kWaits[] = {{"wait_store", waits<true>, kSpan, 0}, {"wait_load", waits<false>, kSpan, 0}};

unsigned char* takes_part;
unsigned* trips;
uint4* memory;

/// Bytes a cycle of each SM: medians. `waiting`: those of them, or others, that wait.
std::vector<double> rates(const Way& way, Sms sms, const Sms& waiting = {}) {
  std::vector<unsigned char> part(kSms, 0);
  for (int sm : sms) part[sm] = 1;
  for (int sm : waiting) {
    if (!part[sm]) sms.push_back(sm);
    part[sm] |= 2;
  }
  cudaMemcpy(takes_part, part.data(), kSms, cudaMemcpyHostToDevice);
  std::vector<std::vector<unsigned>> seen(kSms);
  std::vector<unsigned> now(kSms);
  for (int run = 0; run <= kRuns; ++run) {
    const unsigned zero = 0;
    cudaMemcpyToSymbol(arrived, &zero, sizeof zero);
    way.kernel<<<kSms, kThreads, kShared>>>(takes_part, trips, static_cast<unsigned>(sms.size()), memory, way.footprint);
    cudaMemcpy(now.data(), trips, kSms * sizeof(unsigned), cudaMemcpyDeviceToHost);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      std::fprintf(stderr, "ports: %s: %s\n", way.name, cudaGetErrorString(error));
      std::exit(1);
    }
    for (int sm : sms)
      if (run > 0) seen[sm].push_back(now[sm]);
  }
  std::vector<double> rate(kSms, 0);
  for (int sm : sms) {
    std::nth_element(seen[sm].begin(), seen[sm].begin() + kRuns / 2, seen[sm].end());
    rate[sm] = static_cast<double>(seen[sm][kRuns / 2]) * way.bytes / kSpan;
  }
  return rate;
}

Sms of_tpcs(const std::vector<int>& tpcs, int each = 2) {
  Sms sms;
  for (int tpc : tpcs)
    for (int i = 0; i < each; ++i) sms.push_back(2 * tpc + i);
  return sms;
}

std::vector<std::vector<int>> find_cpcs() {
  Sms all;
  for (int sm = 0; sm < kSms; ++sm) all.push_back(sm);
  const std::vector<double> with = rates(kWrites, all);
  std::vector<std::vector<double>> gain(kTpcs, std::vector<double>(kTpcs, 0));
  for (int left_out = 0; left_out < kTpcs; ++left_out) {
    Sms others;
    for (int sm : all)
      if (sm / 2 != left_out) others.push_back(sm);
    const std::vector<double> without = rates(kWrites, others);
    for (int t = 0; t < kTpcs; ++t) gain[left_out][t] = (without[2 * t] + without[2 * t + 1]) / (with[2 * t] + with[2 * t + 1]) - 1;
  }
  std::vector<std::vector<int>> cpcs;
  std::vector<bool> placed(kTpcs, false);
  for (int t = 0; t < kTpcs; ++t) {
    if (placed[t]) continue;
    cpcs.push_back({t});
    for (int u = t + 1; u < kTpcs; ++u)
      if (!placed[u] && (gain[t][u] + gain[u][t]) / 2 > kTogether) cpcs.back().push_back(u), placed[u] = true;
  }
  return cpcs;
}

int main() {
  cudaMalloc(&takes_part, kSms);
  cudaMalloc(&trips, (kSms + 1) * sizeof(unsigned));
  cudaMalloc(&memory, kMany);
  cudaMemset(memory, 0, kMany);
  for (const Way& way : kWays) cudaFuncSetAttribute(reinterpret_cast<const void*>(way.kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  for (const Way& way : kWaits) cudaFuncSetAttribute(reinterpret_cast<const void*>(way.kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);

  const std::vector<std::vector<int>> cpcs = find_cpcs();
  std::map<int, std::vector<int>> gpcs;  // CPCs: their first TPCs are dealt to GPCs in turn
  std::printf("what,at,value\n");
  std::vector<int> large, small, tpcs_of_gpc(8, 0), gpc_of(kTpcs);
  for (std::size_t c = 0; c < cpcs.size(); ++c) {
    const int gpc = cpcs[c][0] % 8;
    gpcs[gpc].push_back(static_cast<int>(c));
    (cpcs[c].size() == 3 ? large : small).push_back(static_cast<int>(c));
    std::string tpcs;
    for (int tpc : cpcs[c]) tpcs += (tpcs.empty() ? "" : " ") + std::to_string(tpc), gpc_of[tpc] = gpc, ++tpcs_of_gpc[gpc];
    std::printf("cpc,%zu,%s\n", c, tpcs.c_str());
  }
  if (large.size() < 2 || small.empty()) {
    std::fprintf(stderr, "ports: no CPCs of three and of two TPCs were found\n");
    return 1;
  }

  const std::vector<int>& one = cpcs[large[0]];
  std::vector<std::pair<std::string, Sms>> sets = {
      {"an SM", {2 * one[0]}}, {"a TPC", of_tpcs({one[0]})},        {"2 TPCs of a CPC", of_tpcs({one[0], one[1]})},
      {"3 TPCs of a CPC", of_tpcs(one)}, {"3 TPCs of another", of_tpcs(cpcs[large[5 % large.size()]])}};
  std::vector<int> three;
  for (int g = 0; g < 3; ++g) three.push_back(cpcs[gpcs[g][0]][0]);
  sets.push_back({"3 TPCs of 3 GPCs", of_tpcs(three)});
  for (auto& [g, those] : gpcs) {
    std::vector<int> first, two, whole;
    for (int c : those) first.push_back(cpcs[c][0]);
    for (int i = 0; i < 2; ++i) two.insert(two.end(), cpcs[those[i]].begin(), cpcs[those[i]].end());
    for (int c : those) whole.insert(whole.end(), cpcs[c].begin(), cpcs[c].end());
    const std::string name = "GPC " + std::to_string(g);
    if (g == 1 || g == 6) sets.push_back({"a TPC of each CPC of " + name, of_tpcs(first)}), sets.push_back({"2 CPCs of " + name, of_tpcs(two)});
    sets.push_back({name, of_tpcs(whole)});
  }
  std::vector<int> a_cpc_each, all;
  for (auto& [g, those] : gpcs) a_cpc_each.insert(a_cpc_each.end(), cpcs[those[0]].begin(), cpcs[those[0]].end());
  for (int t = 0; t < kTpcs; ++t) all.push_back(t);
  sets.push_back({"a CPC of each GPC", of_tpcs(a_cpc_each)});
  sets.push_back({"all", of_tpcs(all)});

  for (const Way& way : kWays) {
    for (const auto& [name, sms] : sets) {
      const std::vector<double> rate = rates(way, sms);
      double sum = 0;
      for (int sm : sms) sum += rate[sm];
      std::printf("%s,%s (%zu SMs),%.1f\n", way.name, name.c_str(), sms.size(), sum);
      if (name != "all") continue;
      double part[3] = {0, 0, 0};
      int count[3] = {0, 0, 0};
      for (const std::vector<int>& cpc : cpcs)
        for (int sm : of_tpcs(cpc)) {
          const int kind = cpc.size() == 2 ? 0 : tpcs_of_gpc[gpc_of[cpc[0]]] == 8 ? 1 : 2;
          part[kind] += rate[sm], ++count[kind];
        }
      const char* kinds[] = {"CPCs of two TPCs", "others of GPCs of eight TPCs", "others"};
      for (int k = 0; k < 3; ++k) std::printf("%s_an_sm,%s (%d SMs),%.2f\n", way.name, kinds[k], count[k], count[k] ? part[k] / count[k] : 0.0);
    }
  }
  // One SM waits, or all of a CPC that write besides.
  const std::vector<int>& few = cpcs[small[0]];
  const Sms every = of_tpcs(all);
  const auto without = [&](const std::vector<int>& tpcs) {
    Sms rest;
    for (int sm : every)
      if (std::find(tpcs.begin(), tpcs.end(), sm / 2) == tpcs.end()) rest.push_back(sm);
    return rest;
  };
  for (const Way& way : kWaits) {
    const auto print = [&](const char* name, const Sms& writing, const Sms& waiting) {
      const std::vector<double> wait = rates(way, writing, waiting);
      double sum = 0;
      for (int sm : waiting) sum += wait[sm];
      std::printf("%s,%s,%.0f\n", way.name, name, sum / static_cast<double>(waiting.size()));
    };
    print("none writes", {}, {2 * one[0]});
    print("the SM writes", {2 * one[0]}, {2 * one[0]});
    print("its CPC writes", of_tpcs(one), {2 * one[0]});
    print("all of 3 TPCs write", every, of_tpcs(one));
    print("all of 2 TPCs write", every, of_tpcs(few));
    print("all but its TPC write", without({one[0]}), {2 * one[0]});
    print("all but its CPC write", without(one), {2 * one[0]});
    print("all but its CPC of 2 TPCs write", without(few), {2 * few[0]});
    print("a CPC of each GPC writes", of_tpcs(a_cpc_each), {2 * a_cpc_each[0]});
  }
}
