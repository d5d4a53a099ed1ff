#include "advise/fewer_bytes.h"

namespace forewarp::advise {

namespace {

bool can_shrink(const AccessPattern& p) {
  const bool global = p.space == MemorySpace::Global || p.space == MemorySpace::Generic;
  return global && p.lanes != 0 && p.bytes >= 2 && !is_box(p) &&
         (p.kind == MemoryKind::Load || p.kind == MemoryKind::Store || p.kind == MemoryKind::AsyncCopy);
}

}  // namespace

std::shared_ptr<const KernelTrace> half_the_bytes(const KernelTrace& trace) {
  auto out = std::make_shared<KernelTrace>(trace);
  bool any = false;
  for (AccessPattern& p : out->patterns) {
    if (!can_shrink(p)) continue;
    any = true;
    p.bytes /= 2;
    for (std::int32_t& offset : p.offsets) offset /= 2;
  }
  if (!any) return nullptr;
  return out;
}

}  // namespace forewarp::advise
