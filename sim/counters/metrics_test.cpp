#include "counters/metrics.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "counters/summary.h"

using namespace forewarp;

namespace {

Instruction make(Opcode opcode, Pipe pipe, OperationClass operation, MemorySpace space = MemorySpace::None,
                 MemoryKind kind = MemoryKind::None) {
  Instruction i;
  i.opcode = opcode;
  i.pipe = pipe;
  i.operation = operation;
  i.space = space;
  i.memory = kind;
  return i;
}

enum : std::size_t {
  kFfma,
  kImad,
  kLdg,
  kStg,
  kLds,
  kSts,
  kAtoms,
  kBra,
  kBssy,
  kHfma,
  kRed,
  kLdl,
  kLd,
  kLdgsts,
  kCount
};

KernelTrace sample(int sm) {
  auto kernel = std::make_shared<Kernel>();
  const bool hopper = sm >= 90;
  auto& code = kernel->instructions;
  code.resize(kCount);
  code[kFfma] = make(Opcode::FFMA, Pipe::Fma, OperationClass::Ffma);
  code[kImad] = make(Opcode::IMAD, hopper ? Pipe::FmaHeavy : Pipe::Fma, OperationClass::Integer);
  code[kLdg] = make(Opcode::LDG, Pipe::Lsu, OperationClass::Memory, MemorySpace::Global, MemoryKind::Load);
  code[kStg] = make(Opcode::STG, Pipe::Lsu, OperationClass::Memory, MemorySpace::Global, MemoryKind::Store);
  code[kLds] = make(Opcode::LDS, Pipe::Lsu, OperationClass::Memory, MemorySpace::Shared, MemoryKind::Load);
  code[kSts] = make(Opcode::STS, Pipe::Lsu, OperationClass::Memory, MemorySpace::Shared, MemoryKind::Store);
  code[kAtoms] = make(Opcode::ATOMS, Pipe::Lsu, OperationClass::Memory, MemorySpace::Shared, MemoryKind::Atomic);
  code[kBra] = make(Opcode::BRA, Pipe::Cbu, OperationClass::Control);
  code[kBssy] = make(Opcode::BSSY, Pipe::Cbu, OperationClass::Control);
  code[kHfma] = make(Opcode::HFMA2, hopper ? Pipe::Fma : Pipe::Fp16, OperationClass::Hfma);
  code[kRed] = make(Opcode::RED, Pipe::Lsu, OperationClass::Memory, MemorySpace::Global, MemoryKind::Reduction);
  code[kLdl] = make(Opcode::LDL, Pipe::Lsu, OperationClass::Memory, MemorySpace::Local, MemoryKind::Load);
  code[kLd] = make(Opcode::LD, Pipe::Lsu, OperationClass::Memory, MemorySpace::Generic, MemoryKind::Load);
  code[kLdgsts] = make(Opcode::LDGSTS, Pipe::Lsu, OperationClass::Memory, MemorySpace::Global, MemoryKind::AsyncCopy);

  KernelTrace trace;
  trace.kernel = kernel;
  trace.sm = sm;
  trace.launch.grid = {10, 1, 1};
  trace.classes.resize(1);
  trace.classes[0].population = 10;
  auto& counts = trace.classes[0].counts.edit();
  counts.resize(kCount);
  for (auto& c : counts) {
    c.executed = 1;
    c.active_lanes = 32;
    c.enabled_lanes = 16;
    c.executed_on = 1;
  }
  counts[kFfma].executed = 100;
  counts[kFfma].active_lanes = 3200;
  counts[kFfma].enabled_lanes = 3100;
  counts[kLdg].requests = 3;
  counts[kLdg].sectors = counts[kLdg].tag_sectors = 12;
  counts[kLdg].ideal_sectors = 8;
  counts[kLdg].lines = 5;
  counts[kLdg].bytes = 288;
  counts[kStg].requests = 2;
  counts[kStg].sectors = counts[kStg].tag_sectors = 64;
  counts[kStg].bytes = 256;
  counts[kLds].shared_requests = 4;
  counts[kLds].wavefronts = 16;
  counts[kLds].ideal_wavefronts = 4;
  counts[kLds].bank_conflicts = 11;
  counts[kLds].bytes = 512;
  counts[kSts].wavefronts = 7;
  counts[kSts].bank_conflicts = 2;
  counts[kAtoms].wavefronts = 32;
  counts[kAtoms].bank_conflicts = 31;
  counts[kBra].executed = 5;
  counts[kBra].executed_on = 4;
  counts[kBra].divergent = 2;
  counts[kRed].requests = 1;
  counts[kRed].sectors = 1;
  counts[kRed].tag_sectors = 8;
  counts[kRed].bytes = 16;
  counts[kLdl].requests = 1;
  counts[kLdl].sectors = counts[kLdl].tag_sectors = 4;
  counts[kLd].requests = 1;
  counts[kLd].sectors = counts[kLd].tag_sectors = 2;
  counts[kLd].shared_requests = 1;
  counts[kLd].wavefronts = 3;
  counts[kLdgsts].requests = 1;
  counts[kLdgsts].sectors = counts[kLdgsts].tag_sectors = 16;
  counts[kLdgsts].shared_requests = 1;
  counts[kLdgsts].wavefronts = 4;
  return trace;
}

}  // namespace

TEST_CASE("instruction counters add up") {
  const MetricSet m = exact_metrics(sample(80));
  const double executed = 10 * (100 + 5 + 12);
  CHECK(m.get("smsp__inst_executed.sum") == executed);
  CHECK(m.get("smsp__thread_inst_executed_per_inst_executed.ratio") == Approx(10 * (3200 + 13 * 32) / executed));
  CHECK(m.get("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio") ==
        Approx(10 * (3100 + 13 * 16) / executed));
  CHECK(m.get("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum") == 31000);
  CHECK(m.get("smsp__sass_thread_inst_executed_op_integer_pred_on.sum") == 160);
  CHECK(m.get("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum") == 0);
  CHECK(m.get("sm__inst_executed_pipe_lsu.sum") == 90);
}

TEST_CASE("pipes are named by architecture") {
  const MetricSet ampere = exact_metrics(sample(80)), hopper = exact_metrics(sample(90));
  CHECK(ampere.get("sm__inst_executed_pipe_fma.sum") == 1010);
  CHECK(ampere.get("sm__inst_executed_pipe_fp16.sum") == 10);
  CHECK_FALSE(ampere.contains("sm__inst_executed_pipe_tma.sum"));
  CHECK(hopper.get("sm__inst_executed_pipe_fma.sum") == 1020);
  CHECK(hopper.get("sm__inst_executed_pipe_fma_type_fp16.sum") == 10);
  CHECK_FALSE(hopper.contains("sm__inst_executed_pipe_fp16.sum"));
  CHECK(hopper.contains("sm__inst_executed_pipe_tma.sum"));
}

TEST_CASE("branches are uniform or divergent") {
  const MetricSet m = exact_metrics(sample(90));
  CHECK(m.get("smsp__sass_branch_targets.sum") == 50);
  CHECK(m.get("smsp__sass_branch_targets_threads_divergent.sum") == 20);
  CHECK(m.get("smsp__sass_branch_targets_threads_uniform.sum") == 30);
  CHECK(m.get("smsp__sass_average_branch_targets_threads_uniform.pct") == Approx(60));
  CHECK(m.get("smsp__inst_executed_op_branch.sum") == 50);
  // A BSSY; the counter leaves BRA out.
  CHECK(m.get("sm__inst_executed_pipe_cbu.sum") == 10);
  CHECK(m.get("sm__inst_executed_pipe_cbu_pred_on_any.sum") == 10);
}

TEST_CASE("memory counters go by space and kind") {
  const MetricSet m = exact_metrics(sample(90));
  CHECK(m.get("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum") == 50);  // LDG, LDGSTS and the generic LD
  CHECK(m.get("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") == 300);
  CHECK(m.get("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum") == 640);
  CHECK(m.get("l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum") == 80);
  CHECK(m.get("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum") == 40);
  CHECK(m.get("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio") == 4);
  CHECK(m.get("smsp__sass_average_data_bytes_per_sector_mem_global_op_red.ratio") == 16);
  CHECK(m.get("smsp__sass_average_data_bytes_per_sector_mem_global_op_atom.ratio") == 0);
  CHECK(m.get("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum") == 190);
  CHECK(m.get("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum") == 110);
  CHECK(m.get("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum") == 70);
  CHECK(m.get("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum") == 320);
  CHECK(m.get("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum") == 40);
  CHECK(m.get("memory_l1_wavefronts_shared") == 10 * (16 + 7 + 32 + 3 + 4));
  CHECK(m.get("memory_l2_theoretical_sectors_global_ideal") == 80);
}

TEST_CASE("loads of matrices are shared loads to the unit, an operation of their own to the code") {
  KernelTrace trace = sample(90);
  Kernel kernel = *trace.kernel;
  kernel.instructions[kLds].opcode = Opcode::LDSM;
  trace.kernel = std::make_shared<Kernel>(kernel);
  const MetricSet m = exact_metrics(trace);
  CHECK(m.get("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum") == 190);
  CHECK(m.get("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum") == 30);
  CHECK(m.get("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum") == 160);
  CHECK(m.get("smsp__sass_inst_executed_op_ldsm.sum") == 10);
  CHECK(exact_metrics(sample(90)).get("smsp__sass_inst_executed_op_ldsm.sum") == 0);
}

TEST_CASE("a metric set keeps its order and replaces in place") {
  MetricSet m;
  m.set("b", 1);
  m.set("a", 2);
  m.set("b", 3);
  CHECK(m.size() == 2);
  CHECK(m.begin()->first == "b");
  CHECK(m.get("b") == 3);
  CHECK_FALSE(m.find("c"));
  MetricSet other;
  other.set("c", 4);
  other.merge(m);
  CHECK(other.size() == 3);
}

TEST_CASE("metrics are listed once") {
  std::set<std::string> names;
  for (const MetricDescription& d : describe_metrics()) {
    CHECK(names.insert(d.name).second);
    CHECK_FALSE(d.meaning.empty());
  }
  CHECK(names.size() > 100);
}

namespace {

Instruction reads(Opcode opcode, Pipe pipe, SpecialRegister special) {
  Instruction i = make(opcode, pipe, OperationClass::Misc);
  i.operand_count = 2;
  i.operands[1].kind = OperandKind::Special;
  i.operands[1].special = special;
  return i;
}

/// One warp that goes through all instructions of `code`, and once more through the last `again` of them.
KernelTrace straight_line(std::vector<Instruction> code, std::uint32_t again) {
  KernelTrace trace;
  auto kernel = std::make_shared<Kernel>();
  kernel->instructions = std::move(code);
  const auto size = static_cast<std::uint32_t>(kernel->instructions.size());
  trace.kernel = kernel;
  trace.sm = 90;
  trace.launch.grid = {3, 1, 1};
  trace.classes.resize(1);
  trace.classes[0].population = 3;
  trace.classes[0].paths = {{{{0, size}, {size - again, again}}, size + again}};
  trace.classes[0].warps.resize(1);
  trace.classes[0].counts.edit().resize(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    InstructionCount& c = trace.classes[0].counts.edit()[i];
    c.executed = c.executed_on = i < size - again ? 1 : 2;
  }
  return trace;
}

}  // namespace

TEST_CASE("pipe counters leave out what they leave out on an H200") {
  const MetricSet m = exact_metrics(straight_line(
      {reads(Opcode::S2R, Pipe::Lsu, SpecialRegister::TidX), reads(Opcode::S2R, Pipe::Lsu, SpecialRegister::CtaIdX),
       reads(Opcode::S2UR, Pipe::Lsu, SpecialRegister::CtaIdX),
       make(Opcode::ULDC, Pipe::Uniform, OperationClass::Uniform),
       make(Opcode::ULEA, Pipe::Uniform, OperationClass::Uniform),
       make(Opcode::EXIT, Pipe::Cbu, OperationClass::Control)},
      0));
  CHECK(m.get("sm__inst_executed_pipe_lsu.sum") == 3);
  CHECK(m.get("sm__inst_executed_pipe_adu.sum") == 6);
  CHECK(m.get("sm__inst_executed_pipe_uniform.sum") == 3);
  CHECK(m.get("sm__inst_executed_pipe_cbu.sum") == 3);
  CHECK(m.get("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum") == 3);
  CHECK(m.get("smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared.sum") == 0);
}

TEST_CASE("products of warp groups count as fp16, by their own operations, and pass their factors through the banks") {
  Instruction product = make(Opcode::HGMMA, Pipe::Tensor, OperationClass::HalfOther);
  product.shape = {.m = 64, .n = 128, .k = 16};
  product.destination_count = 1;
  product.operand_count = 2;
  product.operands[1].kind = OperandKind::Descriptor;
  const auto metrics = [&] { return exact_metrics(straight_line({product}, 1)); };
  const double warps = metrics().get("smsp__inst_executed.sum");
  CHECK(metrics().get("sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum") == warps * 2 * 16 * 128 * 16);
  CHECK(metrics().get("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum") == 0);
  // 64 x 16 and 16 x 128 halves, 6 KB for four warps.
  CHECK(metrics().get("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum") == warps * 12);
  CHECK(metrics().get("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum") == warps * 12);
  product.operands[1].kind = OperandKind::Register;
  CHECK(metrics().get("smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared.sum") == warps * 8);
}

TEST_CASE("a barrier sends a pass through the data stage if there is something to order") {
  const Instruction barrier = make(Opcode::BAR, Pipe::Adu, OperationClass::Misc);
  const Instruction shuffle = make(Opcode::SHFL, Pipe::Lsu, OperationClass::Communication);
  // The shuffle, the first barrier, and nothing for the other two; then the last two again.
  CHECK(exact_metrics(straight_line({shuffle, barrier, barrier, barrier}, 2))
            .get("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum") == 3 * 2);
  CHECK(exact_metrics(straight_line({barrier, shuffle, barrier}, 2))
            .get("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum") == 3 * 4);
}
