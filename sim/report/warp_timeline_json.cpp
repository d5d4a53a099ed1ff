#include <algorithm>
#include <map>

#include "report/case_json.h"

namespace forewarp::report {

namespace {

using Json = nlohmann::ordered_json;

std::uint64_t byte_address(std::uint32_t instruction) { return std::uint64_t{instruction} * 16; }

const char* copy_kind_name(BlockRecord::CopyKind kind) {
  using Kind = BlockRecord::CopyKind;
  switch (kind) {
    case Kind::In:
      return "load";
    case Kind::Out:
      return "store";
    case Kind::Reduction:
      return "reduction";
    case Kind::Prefetch:
      return "prefetch";
    case Kind::ToBlocks:
      break;
  }
  return "to_cluster";
}

/// Cycles since the record began.
class Clock {
 public:
  explicit Clock(const BlockRecord& record) : start_(record.start) {}
  Json operator()(Cycle at) const { return at == BlockRecord::kOpen ? Json(nullptr) : Json(at - std::min(at, start_)); }

 private:
  Cycle start_;
};

/// Stretches as columns: each lasts until the next begins, the last one until `to`.
Json stretches_json(const BlockRecord::WarpRow& row, const Clock& clock) {
  Json from = Json::array(), state = Json::array(), pc = Json::array(), waits = Json::array();
  for (std::size_t i = 0; i < row.intervals.size(); ++i) {
    const WarpInterval& one = row.intervals[i];
    from.push_back(clock(one.from));
    state.push_back(static_cast<int>(one.state));
    pc.push_back(byte_address(one.pc));
    Json what{{"stretch", i}};
    if (one.source != WarpInterval::kNone) what["source"] = byte_address(one.source);
    if (one.barrier != WarpInterval::kNone) what["barrier"] = one.barrier;
    if (one.state != Stall::Barrier && one.barrier != WarpInterval::kNone) what["phase"] = one.phase;
    if (what.size() > 1) waits.push_back(std::move(what));
  }
  return {
      {"from", std::move(from)}, {"state", std::move(state)}, {"pc", std::move(pc)}, {"waits_for", std::move(waits)}};
}

Json warps_json(const WarpTimeline& t, const Clock& clock) {
  Json list = Json::array();
  for (std::size_t r = 0; r < t.record->warps.size(); ++r) {
    const BlockRecord::WarpRow& row = t.record->warps[r];
    Json j{{"block", t.record->blocks[row.block].linear},
           {"warp", row.warp},
           {"sub_partition", row.sub_partition},
           {"role", role_name(t.roles[r])},
           {"start", clock(row.started)},
           {"to", clock(row.intervals.empty() ? row.started : row.intervals.back().to)},
           {"ended", row.end <= t.record->end}};
    j.update(stretches_json(row, clock));
    list.push_back(std::move(j));
  }
  return list;
}

Json copies_json(const WarpTimeline& t, const Clock& clock) {
  Json list = Json::array();
  for (const BlockRecord::Copy& copy : t.record->copies) {
    const BlockRecord::WarpRow& row = t.record->warps[copy.row];
    Json j{{"block", t.record->blocks[row.block].linear},
           {"warp", row.warp},
           {"pc", byte_address(copy.pc)},
           {"kind", copy_kind_name(copy.kind)},
           {"bytes", copy.bytes},
           {"issued", clock(copy.issued)},
           {"done", clock(copy.done)}};
    if (copy.kind == BlockRecord::CopyKind::In || copy.kind == BlockRecord::CopyKind::ToBlocks) {
      j["barrier"] = copy.barrier;
      if (copy.blocks != 0) {
        j["to"] = Json::array();
        for (const BlockRecord::Block& block : t.record->blocks)
          if ((copy.blocks >> block.rank & 1) != 0) j["to"].push_back(block.linear);
      }
    }
    list.push_back(std::move(j));
  }
  return list;
}

Json products_json(const WarpTimeline& t, const Clock& clock) {
  Json list = Json::array();
  for (const BlockRecord::Products& group : t.record->products) {
    const BlockRecord::WarpRow& row = t.record->warps[group.row];
    list.push_back({{"block", t.record->blocks[row.block].linear},
                    {"warp", row.warp},
                    {"pc", byte_address(group.pc)},
                    {"products", group.count},
                    {"issued", clock(group.issued)},
                    {"started", clock(group.started)},
                    {"done", clock(group.done)}});
  }
  return list;
}

Json barriers_json(const WarpTimeline& t, const Clock& clock) {
  Json list = Json::array();
  for (const TimelineBarrier& barrier : t.barriers) {
    Json ends = Json::array();
    for (const BlockRecord::PhaseEnd& end : t.record->phases)
      if (end.block == barrier.block && end.barrier == barrier.offset) ends.push_back(clock(end.at));
    list.push_back({{"block", t.record->blocks[barrier.block].linear},
                    {"offset", barrier.offset},
                    {"name", barrier.name},
                    {"filled_by_copies", barrier.filled},
                    {"ring", barrier.ring},
                    {"phase_ends", std::move(ends)}});
  }
  return list;
}

Json rings_json(const WarpTimeline& t) {
  Json list = Json::array();
  for (const TimelineRing& ring : t.rings)
    list.push_back({{"name", ring.name},
                    {"stages", ring.stages},
                    {"filled_by_copies", ring.filled},
                    {"waits", ring.asked},
                    {"period_cycles", ring.period},
                    {"late_cycles", ring.late},
                    {"most_late_cycles", ring.most_late},
                    {"copy_cycles", ring.latency},
                    {"copy_bytes", ring.bytes}});
  return list;
}

Json busy_json(const WarpTimeline& t, const Clock& clock) {
  Json list = Json::array();
  std::map<std::pair<std::uint16_t, std::uint8_t>, std::size_t> place;
  for (const BlockRecord::Busy& busy : t.record->busy) {
    const auto [known, added] = place.try_emplace({busy.block, busy.sub_partition}, list.size());
    if (added)
      list.push_back({{"block", t.record->blocks[busy.block].linear},
                      {"sub_partition", busy.sub_partition},
                      {"from", Json::array()},
                      {"to", Json::array()}});
    list[known->second]["from"].push_back(clock(busy.from));
    list[known->second]["to"].push_back(clock(busy.to));
  }
  return list;
}

}  // namespace

Json timeline_json(const WarpTimeline& t) {
  const BlockRecord& record = *t.record;
  const Clock clock(record);
  Json blocks = Json::array(), states = Json::array(), left_out = Json::array();
  for (const BlockRecord::Block& block : record.blocks)
    blocks.push_back({{"block", block.linear},
                      {"sm", block.sm},
                      {"rank", block.rank},
                      {"start", clock(block.start)},
                      {"end", clock(block.end)}});
  for (std::size_t r = 0; r < kStallReasons; ++r) states.push_back(stall_name(static_cast<Stall>(r)));
  for (const BlockRecord::LeftOut& gap : record.left_out)
    left_out.push_back({{"at", clock(gap.at)}, {"cycles", gap.cycles}});
  return {{"block", record.request.block},
          {"unit", "cycle"},
          {"began", record.elapsed},
          {"cycles", record.end - record.start},
          {"asked_cycles", record.request.cycles},
          {"full", record.filled},
          {"left_out", std::move(left_out)},
          {"sentence", t.sentence},
          {"shares_from", clock(t.from)},
          {"tensor_pct", t.tensor_pct},
          {"copying_pct", t.copying_pct},
          {"copied_bytes_per_cycle", t.copied_bytes_per_cycle},
          {"rings", rings_json(t)},
          {"blocks", std::move(blocks)},
          {"barriers", barriers_json(t, clock)},
          {"states", std::move(states)},
          {"warps", warps_json(t, clock)},
          {"copies", copies_json(t, clock)},
          {"products", products_json(t, clock)},
          {"tensor_busy", busy_json(t, clock)}};
}

}  // namespace forewarp::report
