// Barriers in shared memory (mbarrier): 64 bits that count arrivals and bytes down; when both are through, the next
// phase begins. A waiter names the parity of the phase whose end it waits for. However often hardware asks, a wait is
// one event here: the lanes stay where they are until the phase is over.
//
// The bits are those that the compiler's code makes and reads: arrivals that are missing and expected are kept as 2^20
// less their number, from bits 1 and 43 on, the bytes from bit 21 on, the parity in bit 63 (sass.md 2.7).
#pragma once

#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "trace/trace.h"

namespace forewarp::emulation {

/// Op::variant of SYNCS; the other fields it uses are op.combine (PhaseCount) for the arrivals a lane brings,
/// op.immediate (PhaseBytes) for bytes, op.carry_out where it leaves for good.
enum class PhaseForm : std::uint8_t { Exchange, Arrive, Check, Try, Invalidate };
enum class PhaseCount : std::uint8_t { Zero, One, Register };
enum class PhaseBytes : std::uint8_t { Zero, One, Announced, Completed };

struct PhaseOutcome {
  PhaseRecord record;
  bool waits = false;  ///< the enabled lanes stay here
};

/// Carries out the SYNCS at hand for the enabled lanes, of which there is one.
PhaseOutcome execute_phase(Exec& x, const Op& op);

/// Split::need of lanes that wait.
LaneMask phase_wanted(const Exec& x, const Op& op, const PhaseRecord& record);

/// Bytes that a copy announced at the barrier at this offset in each of these blocks have arrived; no blocks: the one
/// at hand.
void complete_bytes(Exec& x, BlockMask blocks, std::uint32_t barrier, std::uint32_t bytes);
/// The bytes of a RemoteStore at hand have arrived at the barriers that its lanes name behind their addresses.
PhaseRecord complete_stores(Exec& x, const Op& op);

/// What a split that waits is waiting for.
std::string describe_phase(const BlockState& block, const Split& split);

}  // namespace forewarp::emulation
