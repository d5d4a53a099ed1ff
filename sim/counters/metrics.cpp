#include "counters/metrics.h"

#include "counters/summary.h"

namespace forewarp {
namespace {

using S = CountSummary;
constexpr int kFirst = 0, kLast = 1 << 30;

double number(std::uint64_t value) { return static_cast<double>(value); }
double ratio(std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : number(a) / number(b); }

template <Pipe P>
double executed(const S& s) {
  return number(s.of(P).executed);
}

template <OperationClass... O>
double threads(const S& s) {
  return number((s.of(O).enabled_lanes + ...));
}

template <std::uint64_t InstructionCount::*Field, CountedSpace Space, MemoryKind... Kind>
double memory(const S& s) {
  return number(((s.of(Space, Kind).*Field) + ...));
}

template <CountedSpace Space, MemoryKind Kind>
double bytes_per_sector(const S& s) {
  return ratio(s.of(Space, Kind).bytes, s.of(Space, Kind).sectors);
}

template <InstructionCount CountSummary::*Count, std::uint64_t InstructionCount::*Field>
double counted(const S& s) {
  return number((s.*Count).*Field);
}

/// Of shared memory by instruction, where LDSM and STSM are operations of their own.
template <std::uint64_t InstructionCount::*Field, MemoryKind... Kind>
double shared(const S& s) {
  const std::uint64_t all = ((s.of(CountedSpace::Shared, Kind).*Field) + ...);
  const bool loads = ((Kind == MemoryKind::Load) || ...), stores = ((Kind == MemoryKind::Store) || ...);
  return number(all - (loads ? s.matrix_loads.*Field : 0) - (stores ? s.matrix_stores.*Field : 0));
}

template <MemoryKind Kind>
double bytes_per_wavefront(const S& s) {
  const double wavefronts = shared<&InstructionCount::wavefronts, Kind>(s);
  return wavefronts == 0 ? 0 : shared<&InstructionCount::bytes, Kind>(s) / wavefronts;
}

using C = InstructionCount;
using enum MemoryKind;
constexpr CountedSpace G = CountedSpace::Global, L = CountedSpace::Local, H = CountedSpace::Shared;

void add_instruction_metrics(std::vector<ExactMetric>& t) {
  using enum OperationClass;
  const std::vector<ExactMetric> rows = {
      {"smsp__inst_executed.sum", "inst", "warp instructions executed", kFirst, kLast,
       [](const S& s) { return number(s.all.executed); }},
      {"smsp__thread_inst_executed.sum", "inst", "thread instructions executed, guard true or not", kFirst, kLast,
       [](const S& s) { return number(s.all.active_lanes); }},
      {"smsp__thread_inst_executed_pred_on.sum", "inst",
       "thread instructions executed whose guard was true, a branch's own predicate too", kFirst, kLast,
       [](const S& s) { return number(s.all.enabled_lanes - s.all.held_lanes); }},
      {"smsp__thread_inst_executed_per_inst_executed.ratio", "", "active threads per warp instruction", kFirst, kLast,
       [](const S& s) { return ratio(s.all.active_lanes, s.all.executed); }},
      {"smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", "",
       "active threads whose guard was true, per warp instruction", kFirst, kLast,
       [](const S& s) { return ratio(s.all.enabled_lanes - s.all.held_lanes, s.all.executed); }},
      {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "inst", "FADD thread instructions", kFirst, kLast,
       threads<Fadd>},
      {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", "inst", "FMUL thread instructions", kFirst, kLast,
       threads<Fmul>},
      {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", "FFMA thread instructions", kFirst, kLast,
       threads<Ffma>},
      {"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", "inst", "DADD thread instructions", kFirst, kLast,
       threads<Dadd>},
      {"smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", "inst", "DMUL thread instructions", kFirst, kLast,
       threads<Dmul>},
      {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", "inst", "DFMA thread instructions", kFirst, kLast,
       threads<Dfma>},
      {"smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", "inst", "HADD2 thread instructions", kFirst, kLast,
       threads<Hadd>},
      {"smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", "inst", "HMUL2 thread instructions", kFirst, kLast,
       threads<Hmul>},
      {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", "inst", "HFMA2 thread instructions", kFirst, kLast,
       threads<Hfma>},
      {"smsp__sass_thread_inst_executed_ops_fadd_fmul_ffma_pred_on.sum", "inst",
       "FADD, FMUL and FFMA thread instructions", kFirst, kLast, threads<Fadd, Fmul, Ffma>},
      {"smsp__sass_thread_inst_executed_ops_dadd_dmul_dfma_pred_on.sum", "inst",
       "DADD, DMUL and DFMA thread instructions", kFirst, kLast, threads<Dadd, Dmul, Dfma>},
      {"smsp__sass_thread_inst_executed_ops_hadd_hmul_hfma_pred_on.sum", "inst",
       "HADD2, HMUL2 and HFMA2 thread instructions", kFirst, kLast, threads<Hadd, Hmul, Hfma>},
      {"smsp__sass_thread_inst_executed_op_integer_pred_on.sum", "inst", "integer thread instructions", kFirst, kLast,
       threads<Integer>},
      {"smsp__sass_thread_inst_executed_op_conversion_pred_on.sum", "inst", "type conversion thread instructions",
       kFirst, kLast, threads<Conversion>},
      {"smsp__sass_thread_inst_executed_op_bit_pred_on.sum", "inst", "bit manipulation thread instructions", kFirst,
       kLast, threads<BitManipulation>},
      {"smsp__sass_thread_inst_executed_op_control_pred_on.sum", "inst", "control-flow thread instructions", kFirst,
       kLast, threads<Control>},
      {"smsp__sass_thread_inst_executed_op_memory_pred_on.sum", "inst", "memory thread instructions", kFirst, kLast,
       threads<Memory>},
      {"smsp__sass_thread_inst_executed_op_uniform_pred_on.sum", "inst", "uniform thread instructions", kFirst, kLast,
       threads<Uniform>},
      {"smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum", "inst",
       "thread instructions that pass values between lanes", kFirst, kLast, threads<Communication>},
      {"smsp__sass_thread_inst_executed_op_misc_pred_on.sum", "inst", "thread instructions of no other type", kFirst,
       kLast, threads<Misc>},
      {"smsp__sass_thread_inst_executed_op_fp32_pred_on.sum", "inst", "fp32 thread instructions", kFirst, kLast,
       threads<Fadd, Fmul, Ffma, FloatOther>},
      {"smsp__sass_thread_inst_executed_op_fp16_pred_on.sum", "inst", "fp16 thread instructions", kFirst, kLast,
       threads<Hadd, Hmul, Hfma, HalfOther>},
      {"smsp__sass_thread_inst_executed_op_fp64_pred_on.sum", "inst", "fp64 thread instructions", kFirst, kLast,
       threads<Dadd, Dmul, Dfma, DoubleOther>},
  };
  t.insert(t.end(), rows.begin(), rows.end());
}

void add_pipe_metrics(std::vector<ExactMetric>& t) {
  const std::vector<ExactMetric> rows = {
      {"sm__inst_executed_pipe_adu.sum", "inst", "warp instructions executed by the address divergence unit", kFirst,
       kLast, executed<Pipe::Adu>},
      {"sm__inst_executed_pipe_alu.sum", "inst", "warp instructions executed by the ALU pipe", kFirst, kLast,
       executed<Pipe::Alu>},
      {"sm__inst_executed_pipe_cbu.sum", "inst", "warp instructions executed by the convergence barrier unit", kFirst,
       kLast, executed<Pipe::Cbu>},
      {"sm__inst_executed_pipe_cbu_pred_on_any.sum", "inst",
       "warp instructions executed by the convergence barrier unit with at least one thread's guard true", kFirst,
       kLast, [](const S& s) { return number(s.of(Pipe::Cbu).executed_on); }},
      {"sm__inst_executed_pipe_fma.sum", "inst", "warp instructions executed by the FMA pipes", kFirst, kLast,
       [](const S& s) { return number(s.of(Pipe::Fma).executed + s.of(Pipe::FmaHeavy).executed); }},
      {"sm__inst_executed_pipe_fma_type_fp16.sum", "inst", "half-precision warp instructions executed by the FMA pipes",
       86, kLast, [](const S& s) { return number(s.half_on_fma.executed); }},
      {"sm__inst_executed_pipe_fp16.sum", "inst", "warp instructions executed by the FP16 pipe", kFirst, 85,
       executed<Pipe::Fp16>},
      {"sm__inst_executed_pipe_fp64.sum", "inst", "warp instructions executed by the FP64 pipe", kFirst, kLast,
       executed<Pipe::Fp64>},
      {"sm__inst_executed_pipe_lsu.sum", "inst", "warp instructions executed by the load/store unit", kFirst, kLast,
       executed<Pipe::Lsu>},
      {"sm__inst_executed_pipe_tensor.sum", "inst", "warp instructions executed by the tensor pipe", kFirst, kLast,
       executed<Pipe::Tensor>},
      {"sm__inst_executed_pipe_tensor_op_dmma.sum", "inst", "DMMA warp instructions", kFirst, kLast,
       [](const S& s) { return number(s.double_matrix.executed); }},
      {"sm__inst_executed_pipe_tensor_op_hmma.sum", "inst", "HMMA and HFMA2.MMA warp instructions", kFirst, kLast,
       [](const S& s) { return number(s.float_matrix.executed + s.half_on_tensor.executed); }},
      {"sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", "inst", "HFMA2.MMA warp instructions", kFirst, kLast,
       [](const S& s) { return number(s.half_on_tensor.executed); }},
      {"sm__inst_executed_pipe_tensor_op_imma.sum", "inst", "IMMA and BMMA warp instructions", kFirst, kLast,
       [](const S& s) { return number(s.integer_matrix.executed); }},
      {"sm__inst_executed_pipe_tex.sum", "inst", "warp instructions executed by the texture pipe", kFirst, kLast,
       executed<Pipe::Tex>},
      {"sm__inst_executed_pipe_tma.sum", "inst", "warp instructions executed by the tensor memory accelerator", 90,
       kLast, executed<Pipe::Tma>},
      {"sm__inst_executed_pipe_uniform.sum", "inst", "warp instructions executed by the uniform pipe", kFirst, kLast,
       executed<Pipe::Uniform>},
      {"sm__inst_executed_pipe_xu.sum", "inst", "warp instructions executed by the transcendental pipe", kFirst, kLast,
       executed<Pipe::Xu>},
  };
  t.insert(t.end(), rows.begin(), rows.end());
}

template <CountSummary::MatrixOperations CountSummary::*Of, bool Sparse, MatrixType... Type>
double operations(const S& s) {
  return number((S::operations(s.*Of, Type, Sparse) + ...));
}

// Operations of matrix instructions, by types of the factors: the names differ between sm_80 and sm_90.
#define FW_MATRIX_METRICS(name, of, what, FIRST, LAST, ...)                                              \
  {"sm__ops_path_tensor_" name "_sparsity_off.sum", "op", "operations of " what ", dense", FIRST, LAST,  \
   operations<&S::of, false, __VA_ARGS__>},                                                              \
  {                                                                                                      \
    "sm__ops_path_tensor_" name "_sparsity_on.sum", "op", "operations of " what ", sparse", FIRST, LAST, \
        operations<&S::of, true, __VA_ARGS__>                                                            \
  }

void add_matrix_metrics(std::vector<ExactMetric>& t) {
  const std::vector<ExactMetric> rows = {
      FW_MATRIX_METRICS("src_fp16_dst_fp16", warp_operations, "fp16 matrices summed in fp16", kFirst, 89,
                        MatrixType::HalfToHalf),
      FW_MATRIX_METRICS("src_fp16_dst_fp32", warp_operations, "fp16 matrices summed in fp32", kFirst, 89,
                        MatrixType::Half),
      FW_MATRIX_METRICS("src_bf16_dst_fp32", warp_operations, "bf16 matrices", kFirst, 89, MatrixType::Bfloat),
      FW_MATRIX_METRICS("src_tf32_dst_fp32", warp_operations, "tf32 matrices", kFirst, 89, MatrixType::Tfloat),
      FW_MATRIX_METRICS("src_int8", warp_operations, "8-bit integer matrices", kFirst, 89, MatrixType::Int8),
      FW_MATRIX_METRICS("src_int4", warp_operations, "4-bit integer matrices", kFirst, 89, MatrixType::Int4),
      {"sm__ops_path_tensor_src_int1.sum", "op", "operations of bit matrices", kFirst, 89,
       operations<&S::warp_operations, false, MatrixType::Bit>},
      FW_MATRIX_METRICS("op_hmma_src_fp16_dst_fp16", warp_operations, "HMMA with fp16 sums", 90, kLast,
                        MatrixType::HalfToHalf),
      FW_MATRIX_METRICS("op_hmma_src_fp16_dst_fp32", warp_operations, "HMMA of fp16 with fp32 sums", 90, kLast,
                        MatrixType::Half),
      FW_MATRIX_METRICS("op_hmma_src_bf16_dst_fp32", warp_operations, "HMMA of bf16", 90, kLast, MatrixType::Bfloat),
      FW_MATRIX_METRICS("op_hmma_src_tf32_dst_fp32", warp_operations, "HMMA of tf32", 90, kLast, MatrixType::Tfloat),
      FW_MATRIX_METRICS("op_imma_src_int8", warp_operations, "IMMA of 8-bit integers", 90, kLast, MatrixType::Int8),
      FW_MATRIX_METRICS("op_hgmma_src_fp16", group_operations, "HGMMA of fp16", 90, kLast, MatrixType::Half,
                        MatrixType::HalfToHalf),
      FW_MATRIX_METRICS("op_hgmma_src_bf16_dst_fp32", group_operations, "HGMMA of bf16", 90, kLast, MatrixType::Bfloat),
      FW_MATRIX_METRICS("op_hgmma_src_tf32_dst_fp32", group_operations, "HGMMA of tf32", 90, kLast, MatrixType::Tfloat),
      FW_MATRIX_METRICS("op_igmma_src_int8", group_operations, "IGMMA of 8-bit integers", 90, kLast, MatrixType::Int8),
      {"sm__ops_path_tensor_op_bmma_src_int1.sum", "op", "operations of BMMA", 90, kLast,
       operations<&S::warp_operations, false, MatrixType::Bit>},
      {"sm__ops_path_tensor_src_fp64.sum", "op", "operations of DMMA", kFirst, kLast,
       operations<&S::warp_operations, false, MatrixType::Double>},
  };
  t.insert(t.end(), rows.begin(), rows.end());
}

#undef FW_MATRIX_METRICS

// Measured on an H200: branch_targets is the number of branches executed, of which each is uniform or divergent.
void add_branch_metrics(std::vector<ExactMetric>& t) {
  const std::vector<ExactMetric> rows = {
      {"smsp__inst_executed_op_branch.sum", "inst", "warp instructions of the CBU except BMOV and BSSY", kFirst, kLast,
       [](const S& s) { return number(s.control_transfer.executed); }},
      {"smsp__sass_inst_executed_op_branch.sum", "inst", "BRA, JMP, BRX, CALL, RET warp instructions", kFirst, kLast,
       [](const S& s) { return number(s.branch.executed); }},
      {"smsp__sass_branch_targets.sum", "branches", "branches executed", kFirst, kLast,
       [](const S& s) { return number(s.branch.executed); }},
      {"smsp__sass_branch_targets_threads_divergent.sum", "branches", "branches whose threads went different ways",
       kFirst, kLast, [](const S& s) { return number(s.branch.divergent); }},
      {"smsp__sass_branch_targets_threads_uniform.sum", "branches", "branches whose threads went one way", kFirst,
       kLast, [](const S& s) { return number(s.branch.executed - s.branch.divergent); }},
      {"smsp__sass_average_branch_targets_threads_uniform.pct", "%", "share of branches whose threads went one way",
       kFirst, kLast,
       [](const S& s) { return 100 * ratio(s.branch.executed - s.branch.divergent, s.branch.executed); }},
  };
  t.insert(t.end(), rows.begin(), rows.end());
}

// Sectors are counted before the lookup; an atomic's are looked up once for each pass (trace/coalesce.cpp). The kinds
// at the end are those that the tag stage counts: asynchronous copies, past L1 too, are loads to it (H200,
// copy_07_async).
#define FW_TAG_METRICS(space, SPACE, op, KIND, what, ...)                                                  \
  {"l1tex__t_requests_pipe_lsu_mem_" space "_op_" op ".sum",                                               \
   "request",                                                                                              \
   "requests of " what,                                                                                    \
   kFirst,                                                                                                 \
   kLast,                                                                                                  \
   memory<&C::requests, SPACE, __VA_ARGS__>},                                                              \
      {"l1tex__t_sectors_pipe_lsu_mem_" space "_op_" op ".sum",                                            \
       "sector",                                                                                           \
       "sectors looked up for " what,                                                                      \
       kFirst,                                                                                             \
       kLast,                                                                                              \
       memory<&C::tag_sectors, SPACE, __VA_ARGS__>},                                                       \
      {"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_" space "_op_" op ".sum",                                  \
       "sector",                                                                                           \
       "distinct sectors of each request, " what,                                                          \
       kFirst,                                                                                             \
       kLast,                                                                                              \
       memory<&C::sectors, SPACE, KIND>},                                                                  \
      {"smsp__sass_inst_executed_op_" space "_" op ".sum",                                                 \
       "inst",                                                                                             \
       "warp instructions: " what,                                                                         \
       kFirst,                                                                                             \
       kLast,                                                                                              \
       memory<&C::executed, SPACE, KIND>},                                                                 \
      {"smsp__sass_data_bytes_mem_" space "_op_" op ".sum",                                                \
       "byte",                                                                                             \
       "distinct bytes asked for by " what,                                                                \
       kFirst,                                                                                             \
       kLast,                                                                                              \
       memory<&C::bytes, SPACE, KIND>},                                                                    \
  {                                                                                                        \
    "smsp__sass_average_data_bytes_per_sector_mem_" space "_op_" op ".ratio", "byte/sector",               \
        "bytes asked for per sector of " what ", at best 32", kFirst, kLast, bytes_per_sector<SPACE, KIND> \
  }

#define FW_SHARED_METRICS(op, what, ...)                                                                \
  {"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" op ".sum",                                          \
   "wavefront",                                                                                         \
   "passes through the banks for " what,                                                                \
   kFirst,                                                                                              \
   kLast,                                                                                               \
   memory<&C::wavefronts, H, __VA_ARGS__>},                                                             \
      {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_" op ".sum",                            \
       "wavefront",                                                                                     \
       "passes through the banks that the addresses ask for, " what,                                    \
       kFirst,                                                                                          \
       kLast,                                                                                           \
       shared<&C::wavefronts, __VA_ARGS__>},                                                            \
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_" op ".sum",                                  \
       "conflict",                                                                                      \
       "passes beyond those the width asks for, " what,                                                 \
       kFirst,                                                                                          \
       kLast,                                                                                           \
       memory<&C::bank_conflicts, H, __VA_ARGS__>},                                                     \
  {                                                                                                     \
    "smsp__sass_inst_executed_op_shared_" op ".sum", "inst", "warp instructions: " what, kFirst, kLast, \
        shared<&C::executed, __VA_ARGS__>                                                               \
  }

void add_memory_metrics(std::vector<ExactMetric>& t) {
  const std::vector<ExactMetric> rows = {
      FW_TAG_METRICS("global", G, "ld", Load, "global loads", Load, AsyncCopy),
      FW_TAG_METRICS("global", G, "st", Store, "global stores", Store),
      FW_TAG_METRICS("global", G, "atom", Atomic, "global atomics", Atomic),
      FW_TAG_METRICS("global", G, "red", Reduction, "global reductions", Reduction),
      FW_TAG_METRICS("local", L, "ld", Load, "local loads", Load),
      FW_TAG_METRICS("local", L, "st", Store, "local stores", Store),
      {"smsp__sass_inst_executed_op_ldgsts.sum", "inst", "warp instructions: asynchronous copies (LDGSTS)", kFirst,
       kLast, memory<&C::executed, G, AsyncCopy>},
      {"smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum", "request", "requests of asynchronous copies",
       kFirst, kLast, memory<&C::requests, G, AsyncCopy>},
      {"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts.sum", "sector",
       "sectors read by asynchronous copies; Nsight Compute adds some for lanes whose guard is off", kFirst, kLast,
       memory<&C::sectors, G, AsyncCopy>},
      {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum", "wavefront",
       "passes through the banks for asynchronous copies; Nsight Compute adds one for each lane whose guard is off",
       kFirst, kLast, memory<&C::wavefronts, H, AsyncCopy>},
      {"smsp__sass_inst_executed_op_ldsm.sum", "inst", "warp instructions: loads of matrices (LDSM)", kFirst, kLast,
       counted<&S::matrix_loads, &C::executed>},
      {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum", "wavefront",
       "passes through the banks for loads of matrices", kFirst, kLast, counted<&S::matrix_loads, &C::wavefronts>},
      {"smsp__sass_data_bytes_mem_shared_op_ldsm.sum", "byte", "bytes that loads of matrices ask for", kFirst, kLast,
       counted<&S::matrix_loads, &C::bytes>},
      {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_stsm.sum", "wavefront",
       "passes through the banks for stores of matrices", 90, kLast, counted<&S::matrix_stores, &C::wavefronts>},
      {"smsp__sass_data_bytes_mem_shared_op_stsm.sum", "byte", "bytes that stores of matrices put", 90, kLast,
       counted<&S::matrix_stores, &C::bytes>},
      {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum", "wavefront",
       "passes through the banks for the factors of HGMMA, IGMMA, QGMMA and BGMMA", 90, kLast,
       counted<&S::group_products, &C::wavefronts>},
      FW_SHARED_METRICS("ld", "shared loads", Load),
      FW_SHARED_METRICS("st", "shared stores", Store),
      FW_SHARED_METRICS("atom", "shared atomics", Atomic, Reduction),
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "wavefront",
       "passes through the banks for shared memory, shuffles, thread indices and barriers", kFirst, kLast,
       [](const S& s) {
         return memory<&C::wavefronts, H, Load, Store, Atomic, Reduction>(s) +
                number(s.group_products.wavefronts + s.other_wavefronts);
       }},
      {"smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared.sum", "wavefront",
       "passes through the banks for shared memory alone", kFirst, kLast,
       [](const S& s) {
         return memory<&C::wavefronts, H, Load, Store, Atomic, Reduction, AsyncCopy>(s) +
                number(s.group_products.wavefronts);
       }},
      {"smsp__sass_sectors_mem_global.sum", "sector", "distinct sectors of global requests", kFirst, kLast,
       memory<&C::sectors, G, Load, Store, Atomic, Reduction, AsyncCopy>},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "conflict", "bank conflicts of shared memory", kFirst,
       kLast, memory<&C::bank_conflicts, H, Load, Store, Atomic, Reduction, AsyncCopy>},
      {"smsp__sass_average_data_bytes_per_wavefront_mem_shared_op_ld.ratio", "byte/wavefront",
       "bytes asked for per wavefront of shared loads, at best 128", kFirst, kLast, bytes_per_wavefront<Load>},
      {"smsp__sass_average_data_bytes_per_wavefront_mem_shared_op_st.ratio", "byte/wavefront",
       "bytes asked for per wavefront of shared stores, at best 128", kFirst, kLast, bytes_per_wavefront<Store>},
      {"memory_l2_theoretical_sectors_global", "sector", "distinct sectors of global requests", kFirst, kLast,
       memory<&C::sectors, G, Load, Store, Atomic, Reduction, AsyncCopy>},
      {"memory_l2_theoretical_sectors_global_ideal", "sector", "what they would be if lanes lay side by side", kFirst,
       kLast, memory<&C::ideal_sectors, G, Load, Store, Atomic, Reduction, AsyncCopy>},
      {"memory_l1_tag_requests_global", "line", "distinct lines of global requests", kFirst, kLast,
       memory<&C::lines, G, Load, Store, Atomic, Reduction, AsyncCopy>},
      {"memory_l1_wavefronts_shared", "wavefront", "passes through the banks for shared memory", kFirst, kLast,
       memory<&C::wavefronts, H, Load, Store, Atomic, Reduction, AsyncCopy>},
      {"memory_l1_wavefronts_shared_ideal", "wavefront", "what they would be if lanes lay side by side", kFirst, kLast,
       memory<&C::ideal_wavefronts, H, Load, Store, Atomic, Reduction, AsyncCopy>},
  };
  t.insert(t.end(), rows.begin(), rows.end());
}

#undef FW_TAG_METRICS
#undef FW_SHARED_METRICS

}  // namespace

const std::vector<ExactMetric>& exact_metric_table() {
  static const std::vector<ExactMetric> table = [] {
    std::vector<ExactMetric> t;
    add_instruction_metrics(t);
    add_pipe_metrics(t);
    add_matrix_metrics(t);
    add_branch_metrics(t);
    add_memory_metrics(t);
    return t;
  }();
  return table;
}

MetricSet exact_metrics(const KernelTrace& trace) {
  MetricSet metrics;
  if (!trace.kernel) return metrics;
  CountSummary summary = summarize(*trace.kernel, trace.sm, trace.totals());
  summary.other_wavefronts += ordering_barriers(trace);
  for (const ExactMetric& metric : exact_metric_table())
    if (trace.sm >= metric.from_sm && trace.sm <= metric.to_sm) metrics.set(metric.name, metric.value(summary));
  return metrics;
}

}  // namespace forewarp
