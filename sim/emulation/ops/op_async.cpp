// What sm_90 does beside its warps: copies by the tensor memory accelerator, barriers in shared memory, warpgroups.
// Only operands are read here; machine/phases and machine/tensor_copy carry them out.
#include "emulation/machine/phases.h"
#include "emulation/machine/tensor_copy.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

/// Registers more than 255 are none; a pool that had no room would have the loop around it ask again.
void take_registers(Exec& x, const Op& op) { x.predicates[op.pdst[0]] = ~LaneMask{0}; }

std::uint8_t dimensions(const OperandReader& r) {
  constexpr Modifier kDimensions[] = {Modifier::Dim1, Modifier::Dim2, Modifier::Dim3, Modifier::Dim4, Modifier::Dim5};
  for (std::uint8_t i = 0; i < 5; ++i)
    if (r.has(kDimensions[i])) return i + 1;
  return 0;
}

bool decode_copy(const OperandReader& r, Op& op, CopyForm form) {
  const bool two = form != CopyForm::BulkPrefetch;
  if (r.memory() == nullptr || (two && r.second_memory() == nullptr)) return false;
  op.kind = OpKind::TensorCopy;
  op.a = r.uniform_source(r.memory()->uniform);
  if (two) op.b = r.uniform_source(r.second_memory()->uniform);
  op.c = r.integer(0);
  op.variant = static_cast<std::uint8_t>(form);
  op.combine = dimensions(r);
  op.space = MemorySpace::Global;
  op.memory = MemoryKind::AsyncCopy;
  if (!is_tensor(form) && r.values() == 0) return false;
  for (const Operand* o : {r.memory(), r.second_memory()})
    if (o != nullptr && (o->index != kRegisterZero || o->offset != 0)) return false;
  op.carry_out = r.has(Modifier::MULTICAST);  // the blocks are in the upper half of op.c
  return (!op.carry_out || r.values() > 0) && !r.has(Modifier::TwoCta) && !r.has(Modifier::IM2COL) &&
         !r.has(Modifier::IM2COL_W) && !r.has(Modifier::GATHER4) && !r.has(Modifier::W128);
}

bool decode_reduction(const OperandReader& r, Op& op, CopyForm form) {
  struct Operation {
    Modifier modifier;
    BulkOperation operation;
  };
  static constexpr Operation kOperations[] = {
      {Modifier::ADD, BulkOperation::Add},       {Modifier::MIN, BulkOperation::Min},
      {Modifier::MAX, BulkOperation::Max},       {Modifier::INC, BulkOperation::Increment},
      {Modifier::DEC, BulkOperation::Decrement}, {Modifier::AND, BulkOperation::And},
      {Modifier::OR, BulkOperation::Or},         {Modifier::XOR, BulkOperation::Xor}};
  struct Type {
    Modifier modifier;
    BulkType type;
  };
  static constexpr Type kTypes[] = {{Modifier::S32, BulkType::S32}, {Modifier::U64, BulkType::U64},
                                    {Modifier::B64, BulkType::U64}, {Modifier::S64, BulkType::S64},
                                    {Modifier::F32, BulkType::F32}, {Modifier::F64, BulkType::F64},
                                    {Modifier::F16, BulkType::F16}, {Modifier::BF16, BulkType::Bf16}};
  if (!decode_copy(r, op, form)) return false;
  for (const Operation& one : kOperations)
    if (r.has(one.modifier)) op.immediate = 1 + static_cast<std::uint32_t>(one.operation);
  BulkType type = BulkType::U32;
  for (const Type& one : kTypes)
    if (r.has(one.modifier)) type = one.type;
  if (type == BulkType::F32 && r.has(Modifier::FTZ)) type = BulkType::F32Ftz;
  op.target = static_cast<std::uint32_t>(type);
  return op.immediate != 0;
}

}  // namespace

bool emulate_syncs(const OperandReader& r, Op& op) {
  if (r.memory() == nullptr) return false;
  read_address(r, *r.memory(), op);
  op.kind = OpKind::PhaseBarrier;
  op.bytes = 8;
  op.wide_uniform = false;
  op.c = r.has(Modifier::EXCH) ? r.integer64(0) : r.integer(0);
  PhaseForm form = PhaseForm::Arrive;
  if (r.has(Modifier::EXCH)) form = PhaseForm::Exchange;
  if (r.has(Modifier::PHASECHK)) form = r.has(Modifier::TRYWAIT) ? PhaseForm::Try : PhaseForm::Check;
  if (r.has(Modifier::CCTL)) form = PhaseForm::Invalidate;
  op.variant = static_cast<std::uint8_t>(form);
  op.carry_out = r.has(Modifier::OPTOUT);
  op.clusterwide = form == PhaseForm::Arrive && r.has(Modifier::RED);
  if (form != PhaseForm::Arrive) return true;
  // ARRIVE.TRANS64 alone is A1TR: one arrival, and as many bytes announced as the register says.
  struct Name {
    Modifier modifier;
    PhaseCount count;
    PhaseBytes bytes;
  };
  static constexpr Name kNames[] = {{Modifier::A1T0, PhaseCount::One, PhaseBytes::Zero},
                                    {Modifier::A0T1, PhaseCount::Zero, PhaseBytes::One},
                                    {Modifier::A1TR, PhaseCount::One, PhaseBytes::Announced},
                                    {Modifier::A0TR, PhaseCount::Zero, PhaseBytes::Announced},
                                    {Modifier::A0TX, PhaseCount::Zero, PhaseBytes::Completed},
                                    {Modifier::ART0, PhaseCount::Register, PhaseBytes::Zero}};
  Name name = kNames[2];
  for (const Name& n : kNames)
    if (r.has(n.modifier)) name = n;
  op.combine = static_cast<std::uint8_t>(name.count);
  op.immediate = static_cast<std::uint32_t>(name.bytes);
  return r.has(Modifier::ARRIVE) && r.has(Modifier::TRANS64) && !r.has(Modifier::ATR) && !r.has(Modifier::ARVTRANS);
}

bool emulate_utmaldg(const OperandReader& r, Op& op) { return decode_copy(r, op, CopyForm::TensorIn); }
bool emulate_utmastg(const OperandReader& r, Op& op) { return decode_copy(r, op, CopyForm::TensorOut); }
bool emulate_utmaredg(const OperandReader& r, Op& op) { return decode_reduction(r, op, CopyForm::TensorOut); }
bool emulate_utmapf(const OperandReader& r, Op& op) { return decode_copy(r, op, CopyForm::TensorPrefetch); }
bool emulate_ublkcp(const OperandReader& r, Op& op) {
  const Modifier to = r.instruction().modifier_list[0], from = r.instruction().modifier_list[1];
  const bool known = decode_copy(r, op, to == Modifier::G ? CopyForm::BulkOut : CopyForm::BulkIn) && r.values() > 0;
  op.clusterwide = to == from;  // from one block's shared memory to another's
  return known;
}
bool emulate_ublkred(const OperandReader& r, Op& op) {
  return r.instruction().modifier_list[0] == Modifier::G && decode_reduction(r, op, CopyForm::BulkOut);
}
bool emulate_ublkpf(const OperandReader& r, Op& op) { return decode_copy(r, op, CopyForm::BulkPrefetch); }

bool emulate_warpgroup(const OperandReader& r, Op& op) {
  op.kind = OpKind::WarpGroup;
  return r.has(Modifier::ARRIVE) || r.has(Modifier::DEPBAR);
}

bool emulate_cluster_arrive(const OperandReader&, Op& op) {
  op.kind = OpKind::ClusterBarrier;
  op.variant = static_cast<std::uint8_t>(ClusterAction::Arrive);
  return true;
}
bool emulate_cluster_wait(const OperandReader&, Op& op) {
  op.kind = OpKind::ClusterBarrier;
  op.variant = static_cast<std::uint8_t>(ClusterAction::Wait);
  return true;
}

/// The register pair holds the address and its barrier's.
bool emulate_remote_store(const OperandReader& r, Op& op) {
  if (!emulate_store(r, op) || !op.wide_index) return false;
  op.kind = OpKind::RemoteStore;
  op.clusterwide = true;
  op.wide_index = false;
  return true;
}
bool emulate_remote_atomic(const OperandReader& r, Op& op) {
  if (!emulate_atomic(r, op) || !op.wide_index) return false;
  op.kind = OpKind::RemoteStore;
  op.clusterwide = true;
  op.wide_index = false;
  return true;
}

bool emulate_usetmaxreg(const OperandReader&, Op& op) {
  op.run = take_registers;
  return true;
}

}  // namespace forewarp::emulation
