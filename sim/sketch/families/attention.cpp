// The family `attention`: softmax(Q K^T) V of every head, in one kernel or with S and P in memory between three.
#include "sketch/families/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "sketch/families/groups.h"
#include "sketch/families/product.h"
#include "sketch/families/rows.h"

namespace forewarp::sketch {
namespace {

struct Sizes {
  AttentionPlan plan;
  AttentionPlan back;  ///< tiles of the way back
  bool flash = true, backward = false;
  std::uint64_t q_bytes = 0, k_bytes = 0;
};

Argument float_argument(double x) {
  const auto f = static_cast<float>(x);
  std::uint32_t bits = 0;
  static_assert(sizeof f == sizeof bits);
  __builtin_memcpy(&bits, &f, sizeof bits);
  return Argument::scalar(ArgumentKind::F32, bits);
}

int power_of_two(const config::Node& node, int least, int most) {
  const auto n = static_cast<int>(node.integer(least, most));
  if (!is_power_of_two(n)) throw node.error("is " + std::to_string(n), "take a power of two");
  return n;
}

void read_lengths(const config::Node& node, AttentionPlan& plan) {
  constexpr std::int64_t kMost = 1 << 20;
  if (!node.is_list()) {
    plan.queries = plan.keys = node.integer(1, kMost);
    return;
  }
  const std::vector<config::Node> both = node.list(2, 2);
  plan.queries = both[0].integer(1, kMost);
  plan.keys = both[1].integer(1, kMost);
}

int size_of_row(const AttentionPlan& plan) { return plan.row_bytes() / kChunk; }

struct Extent {
  int least, most;
};
/// The tile, where the sketch gives one.
std::optional<config::Node> read_tile(config::Map& m, AttentionPlan& plan, Extent queries, Extent keys) {
  auto tile = m.find("tile");
  if (!tile) return tile;
  const std::vector<config::Node> both = tile->list(2, 2);
  plan.tile_q = power_of_two(both[0], queries.least, queries.most);
  plan.tile_k = power_of_two(both[1], keys.least, keys.most);
  return tile;
}

void read_tiles(config::Map& m, Sizes& sizes, Draft& draft) {
  AttentionPlan& plan = sizes.plan;
  const bool by_fma = plan.type == Type::F32;
  plan.tile_q = by_fma ? 64 : 128;
  plan.tile_k = sizes.flash || by_fma ? 64 : 128;
  plan.warps = by_fma || plan.size > 128 ? 8 : 4;  // so that O of a warp fits its registers
  const auto tile = read_tile(m, plan, {16, 256}, {16, 256});
  if (!tile)
    draft.assume("tile: " + std::to_string(plan.tile_q) + " queries, " + std::to_string(plan.tile_k) + " keys a step");
  const config::Node& about = tile ? *tile : m.node();
  if (by_fma) {
    if (plan.tile_q != plan.tile_k || plan.tile_q < 32 || plan.tile_q > 128)
      throw about.error("does not give each thread one 16-byte load of either",
                        "take [32, 32], [64, 64] or [128, 128]");
    if (const auto warps = m.find("warps"))
      throw warps->error("is of tensor cores", "leave it out for f32, whose tile tells the threads");
    return;
  }
  if (const auto warps = m.find("warps"))
    plan.warps = power_of_two(*warps, 1, 16);
  else
    draft.assume("warps: " + std::to_string(plan.warps));
  if (!sizes.flash) return;
  if (plan.tile_q / plan.warps < kStrip)
    throw about.error("leaves a warp fewer than 16 queries", "take more queries, or fewer warps");
  const int chunks = plan.row_bytes() / kChunk;
  for (const int rows : {plan.tile_q, plan.tile_k})
    if (rows * chunks % plan.threads() != 0 || plan.threads() % chunks != 0)
      throw about.error(
          "does not leave a whole number of 16-byte copies for each of " + std::to_string(plan.threads()) + " threads",
          "take larger tiles, or fewer warps");
}

int warps_of_groups(int rows) { return (1 + rows / kGroupRows) * kGroupThreads / kWarpLanes; }

void plan_groups(AttentionPlan& plan) {
  plan.tile_q = 128;
  plan.tile_k = plan.size > 128 ? 64 : 128;  // more sums of O leave fewer registers for those of S
  plan.warps = warps_of_groups(plan.tile_q);
}

void check_groups(config::Map& m, const AttentionPlan& plan, const std::optional<config::Node>& tile, const char* rows,
                  int bytes, const GpuModel& model) {
  if (const auto warps = m.find("warps"); warps && warps->integer(1, 16) != plan.warps)
    throw warps->error(std::string("is not what wgmma takes: a warpgroup that fetches and one for each 64 ") + rows,
                       "take " + std::to_string(plan.warps) + ", or leave it out");
  const int most = model.occupancy.shared_block_max_bytes;
  if (bytes > most)
    throw(tile ? *tile : m.node())
        .error("takes " + std::to_string(bytes) + " bytes of shared memory; " + std::to_string(most) + " are the most",
               "take smaller tiles");
}

/// A warpgroup that fetches, and one for each 64 queries.
void read_tiles_of_groups(config::Map& m, Sizes& sizes, const GpuModel& model, Draft& draft) {
  AttentionPlan& plan = sizes.plan;
  plan_groups(plan);
  const auto tile = read_tile(m, plan, {64, 128}, {64, 256});
  if (!tile) draft.assume("tile: 128 queries, " + std::to_string(plan.tile_k) + " keys a step");
  plan.warps = warps_of_groups(plan.tile_q);
  check_groups(m, plan, tile, "queries", flash_groups_shared(plan), model);
  draft.assume("two stages of K and of V");
}

/// A warpgroup that fetches, and one for each 64 keys.
void read_tiles_of_groups_back(config::Map& m, Sizes& sizes, const GpuModel& model, Draft& draft) {
  plan_groups(sizes.plan);
  sizes.plan.log_sums = true;
  AttentionPlan& plan = sizes.back;
  plan = sizes.plan;
  plan.tile_q = plan.size > 64 ? 64 : 128;  // the sums of dK and dV take twice the registers
  plan.tile_k = 128;
  const auto tile = read_tile(m, plan, {64, 128}, {64, 128});
  if (!tile)
    draft.assume("tile: " + std::to_string(plan.tile_q) + " queries a step, 128 keys a block; forward 128 and " +
                 std::to_string(sizes.plan.tile_k));
  plan.warps = warps_of_groups(plan.tile_k);
  check_groups(m, plan, tile, "keys", flash_groups_backward_shared(plan), model);
  draft.assume("two stages of Q, dO and dS; dQ is summed in fp32 by atomics, in the order of the product's registers");
}

void read_tiles_back(config::Map& m, Sizes& sizes, Draft& draft) {
  AttentionPlan& plan = sizes.back;
  plan = sizes.plan;
  plan.tile_q = plan.size > 64 ? 32 : 64;  // the sums of dK and dV take twice the registers
  plan.tile_k = 128, plan.warps = 8;
  const auto tile = read_tile(m, plan, {16, 128}, {32, 256});
  if (!tile)
    draft.assume("tile: " + std::to_string(plan.tile_q) + " queries a step, 128 keys a block; forward 128 and 64");
  const config::Node& about = tile ? *tile : m.node();
  plan.warps = plan.tile_k / kStrip;
  if (const auto warps = m.find("warps"); warps && warps->integer(1, 16) != plan.warps)
    throw warps->error("does not give each warp 16 keys", "take " + std::to_string(plan.warps) + ", or other tiles");
  const int strips = plan.tile_q / kStrip, chunks = plan.row_bytes() / kChunk;
  if (strips > plan.warps || plan.size / (plan.warps / strips) < kStrip || 2 * plan.tile_q > plan.threads() ||
      plan.tile_q * size_of_row(plan) % plan.threads() != 0 || plan.threads() % chunks != 0)
    throw about.error("cannot be dealt to " + std::to_string(plan.warps) + " warps", "take [64, 128]");
}

Sizes read(config::Map& m, const GpuModel& model, Draft& draft) {
  Sizes sizes;
  AttentionPlan& plan = sizes.plan;
  const config::Node length = m.at("length");
  read_lengths(length, plan);
  plan.heads = static_cast<int>(m.at("heads").integer(1, 65535));
  const config::Node head = m.at("head");
  plan.size = power_of_two(head, 32, 256);
  if (const auto type = m.find("type"))
    plan.type = read_type(*type, {Type::F16, Type::Bf16, Type::F32});
  else
    draft.assume("type: f16, sums in f32");
  if (const auto algorithm = m.find("algorithm"))
    sizes.flash = algorithm->choice({"unfused", "flash"}) == 1;
  else
    draft.assume("algorithm: flash");
  if (sizes.flash && plan.type == Type::F32)
    throw m.at("type").error("is f32, and flash is sketched on tensor cores",
                             "take f16 or bf16, or algorithm: unfused");
  if (const auto direction = m.find("direction")) {
    sizes.backward = direction->choice({"forward", "backward"}) == 1;
    if (sizes.backward && plan.type == Type::F32)
      throw direction->error("takes f16 or bf16 in a sketch", "take one of them, or leave it out");
  }
  if (sizes.flash && sizes.backward && plan.size > 128)
    throw head.error("leaves no registers beside the sums of dK and dV", "take 128 or less, or algorithm: unfused");
  if (const auto math = m.find("math"); math && math->choice({"mma", "wgmma"}) == 1) {
    if (model.sm < 90) throw math->error("needs a GPU of sm_90", "write mma, or take an H100 or H200");
    if (!sizes.flash) throw math->error("is sketched for flash attention", "write mma, or take algorithm: flash");
    if (plan.size < kPanel)
      throw head.error("makes rows of " + std::to_string(plan.row_bytes()) + " bytes, and wgmma takes 128 of each",
                       std::string("take 64") + (sizes.backward ? " or 128" : ", 128 or 256") + ", or write math: mma");
    plan.wgmma = true;
  }
  if (const auto causal = m.find("causal")) plan.causal = causal->boolean();
  if (plan.causal && plan.queries != plan.keys)
    throw length.error("differ, and a causal mask takes queries and keys of one length", "give one length");
  if (const auto group = m.find("group")) {
    plan.group = power_of_two(*group, 1, 256);
    if (plan.heads % plan.group != 0)
      throw group->error("does not divide " + std::to_string(plan.heads) + " heads", "take a divisor");
    if (plan.group > 1 && sizes.backward && !sizes.flash)
      throw group->error("of heads that share keys has no unfused way back in a sketch",
                         "leave it out, or take algorithm: flash");
  }
  if (plan.wgmma && sizes.backward)
    read_tiles_of_groups_back(m, sizes, model, draft);
  else if (plan.wgmma)
    read_tiles_of_groups(m, sizes, model, draft);
  else if (sizes.backward && sizes.flash)
    read_tiles_back(m, sizes, draft);
  else
    read_tiles(m, sizes, draft);
  const int size = bytes_of(plan.type);
  const std::int64_t q = plan.heads * plan.queries * plan.size, k = plan.heads / plan.group * plan.keys * plan.size;
  std::int64_t most = std::max(q, k);
  if (!sizes.flash) {
    most = std::max(most, plan.heads * plan.queries * plan.keys);
    if (plan.keys * size % kChunk != 0)
      throw length.error("makes rows of S that are no whole 16-byte chunks",
                         "pad it to a multiple of " + std::to_string(kChunk / size));
  }
  if (most >= std::int64_t{1} << 31)
    throw length.error("makes a tensor of 2^31 elements or more", "a sketch counts them in 32 bits: take fewer heads");
  sizes.q_bytes = static_cast<std::uint64_t>(q * size);
  sizes.k_bytes = static_cast<std::uint64_t>(k * size);
  return sizes;
}

struct Buffers {
  int q = 0, k = 0, v = 0, o = 0;
};

struct Gradients {
  int d_o = 0, log_sums = 0, delta = 0, dq_sums = 0, dq = 0, dk = 0, dv = 0;
};
/// `rows`: of log_sums, delta and dq_sums.
Gradients gradients(const Sizes& sizes, int log_sums, std::int64_t rows, Draft& draft) {
  const auto floats = static_cast<std::uint64_t>(rows) * 4;
  Gradients g;
  g.log_sums = log_sums;
  g.d_o = draft.buffer("d_o", sizes.q_bytes, random_fill(sizes.plan.type, 4));
  g.delta = draft.buffer("delta", floats, FillZero{});
  g.dq_sums = draft.buffer("dq_sums", floats * static_cast<std::uint64_t>(sizes.plan.size), FillZero{});
  g.dq = draft.buffer("dq", sizes.q_bytes, FillZero{});
  g.dk = draft.buffer("dk", sizes.k_bytes, FillZero{});
  g.dv = draft.buffer("dv", sizes.k_bytes, FillZero{});
  return g;
}

Launch launch_of(const std::string& kernel, const SourcePosition& where, std::int64_t blocks, int rows, int threads,
                 int shared) {
  Launch l;
  l.kernel = kernel;
  l.where = where;
  l.grid = {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(rows), 1};
  l.block = {static_cast<std::uint32_t>(threads), 1, 1};
  l.dynamic_shared_bytes = static_cast<std::uint32_t>(shared);
  return l;
}
constexpr int kRowThreads = 256;  ///< of the kernels for delta and dq

void draft_backward(const std::string& id, const Sizes& sizes, const Buffers& buffers, int log_sums,
                    const GpuModel& model, const SourcePosition& where, Draft& draft) {
  const AttentionPlan& plan = sizes.back;
  const std::int64_t rows = plan.heads * plan.queries, elements = rows * plan.size;
  const Gradients g = gradients(sizes, log_sums, rows, draft);
  draft.kernels.push_back(flash_delta(plan, model, id + "_delta", where));
  Launch of_delta = launch_of(id + "_delta", where, ceiling(rows, kRowThreads / kWarpLanes), 1, kRowThreads, 0);
  of_delta.arguments = {pointer_to(buffers.o), pointer_to(g.d_o), pointer_to(g.delta), pointer_to(g.dq_sums),
                        number_argument(rows)};
  draft.item.launches.push_back(std::move(of_delta));
  draft.kernels.push_back(flash_backward(plan, model, id + "_backward", where));
  Launch back = launch_of(id + "_backward", where, ceiling(plan.keys, plan.tile_k), plan.heads / plan.group,
                          plan.threads(), flash_backward_shared(plan));
  for (const int b : {buffers.q, buffers.k, buffers.v, g.d_o, g.log_sums, g.delta, g.dq_sums, g.dk, g.dv})
    back.arguments.push_back(pointer_to(b));
  for (const std::int64_t n : {plan.queries, plan.keys}) back.arguments.push_back(number_argument(n));
  for (const double scale : {1.0, kLog2E}) back.arguments.push_back(float_argument(scale / std::sqrt(plan.size)));
  draft.item.launches.push_back(std::move(back));
  draft.kernels.push_back(flash_dq(plan, model, id + "_dq", where));
  Launch of_dq = launch_of(id + "_dq", where, ceiling(elements, 2 * kRowThreads), 1, kRowThreads, 0);
  of_dq.arguments = {pointer_to(g.dq_sums), pointer_to(g.dq), number_argument(elements / 2)};
  draft.item.launches.push_back(std::move(of_dq));
}

void draft_groups_backward(const std::string& id, const Sizes& sizes, const Buffers& buffers, int log_sums,
                           const GpuModel& model, const SourcePosition& where, Draft& draft) {
  const AttentionPlan& plan = sizes.back;
  const std::int64_t pitch = plan.pitch(), pairs = plan.queries * plan.size / 2;
  const int kv_heads = plan.heads / plan.group;
  const Gradients g = gradients(sizes, log_sums, plan.heads * pitch, draft);
  draft.kernels.push_back(flash_delta(plan, model, id + "_delta", where));
  Launch of_delta =
      launch_of(id + "_delta", where, ceiling(pitch, kRowThreads / kWarpLanes), plan.heads, kRowThreads, 0);
  for (const int b : {buffers.o, g.d_o, g.delta, g.dq_sums}) of_delta.arguments.push_back(pointer_to(b));
  for (const std::int64_t n : {plan.queries, pitch}) of_delta.arguments.push_back(number_argument(n));
  draft.item.launches.push_back(std::move(of_delta));
  draft.kernels.push_back(flash_groups_backward(plan, model, id + "_backward", where));
  Launch back = launch_of(id + "_backward", where, ceiling(plan.keys, plan.tile_k), kv_heads, plan.threads(),
                          flash_groups_backward_shared(plan));
  const auto map = [&](int buffer, std::int64_t length, int heads, int rows) {
    back.arguments.push_back(map_of(buffer, plan.type, length, plan.size, rows, heads));
  };
  for (const int b : {buffers.q, g.d_o}) map(b, plan.queries, plan.heads, plan.tile_q);
  for (const int b : {buffers.k, buffers.v}) map(b, plan.keys, kv_heads, plan.tile_k);
  for (const int b : {g.dk, g.dv}) map(b, plan.keys, kv_heads, kGroupRows);
  for (const int b : {g.log_sums, g.delta}) back.arguments.push_back(map_of_floats(b, plan.heads, pitch, plan.tile_q));
  back.arguments.push_back(pointer_to(g.dq_sums));
  for (const std::int64_t n : {plan.queries, plan.keys, pitch}) back.arguments.push_back(number_argument(n));
  for (const double scale : {kLog2E, 1.0}) back.arguments.push_back(float_argument(scale / std::sqrt(plan.size)));
  draft.item.launches.push_back(std::move(back));
  draft.kernels.push_back(flash_dq(plan, model, id + "_dq", where));
  Launch of_dq = launch_of(id + "_dq", where, ceiling(pairs, kRowThreads), plan.heads, kRowThreads, 0);
  of_dq.arguments = {pointer_to(g.dq_sums), pointer_to(g.dq), number_argument(pairs), number_argument(pitch),
                     float_argument(1 / std::sqrt(plan.size))};
  draft.item.launches.push_back(std::move(of_dq));
}

void draft_flash(const std::string& id, const Sizes& sizes, const Buffers& buffers, const GpuModel& model,
                 const SourcePosition& where, Draft& draft) {
  const AttentionPlan& plan = sizes.plan;
  const int log_sums = draft.buffer("log_sums", static_cast<std::uint64_t>(plan.heads * plan.queries) * 4, FillZero{});
  Launch launch =
      launch_of(id, where, ceiling(plan.queries, plan.tile_q), plan.heads, plan.threads(), flash_forward_shared(plan));
  launch.arguments = {pointer_to(buffers.q),      pointer_to(buffers.k),
                      pointer_to(buffers.v),      pointer_to(buffers.o),
                      pointer_to(log_sums),       number_argument(plan.queries),
                      number_argument(plan.keys), float_argument(kLog2E / std::sqrt(plan.size))};
  draft.kernels.push_back(flash_forward(plan, model, id, where));
  draft.item.launches.push_back(std::move(launch));
  if (sizes.backward) draft_backward(id, sizes, buffers, log_sums, model, where, draft);
}

void draft_flash_groups(const std::string& id, const Sizes& sizes, const Buffers& buffers, const GpuModel& model,
                        const SourcePosition& where, Draft& draft) {
  const AttentionPlan& plan = sizes.plan;
  Launch launch =
      launch_of(id, where, ceiling(plan.queries, plan.tile_q), plan.heads, plan.threads(), flash_groups_shared(plan));
  const auto map = [&](int buffer, std::int64_t length, std::int64_t heads, int rows) {
    launch.arguments.push_back(map_of(buffer, plan.type, length, plan.size, rows, heads));
  };
  map(buffers.q, plan.queries, plan.heads, plan.tile_q);
  for (const int b : {buffers.k, buffers.v}) map(b, plan.keys, plan.heads / plan.group, plan.tile_k);
  map(buffers.o, plan.queries, plan.heads, kGroupRows);
  for (const std::int64_t n : {plan.queries, plan.keys}) launch.arguments.push_back(number_argument(n));
  launch.arguments.push_back(float_argument(kLog2E / std::sqrt(plan.size)));
  int log_sums = 0;
  if (sizes.backward) {
    const std::int64_t pitch = sizes.back.pitch();
    log_sums = draft.buffer("log_sums", static_cast<std::uint64_t>(plan.heads * pitch) * 4, FillZero{});
    launch.arguments.push_back(number_argument(pitch));
    launch.arguments.push_back(pointer_to(log_sums));
  }
  draft.kernels.push_back(flash_groups(plan, model, id, where));
  draft.item.launches.push_back(std::move(launch));
  if (sizes.backward) draft_groups_backward(id, sizes, buffers, log_sums, model, where, draft);
}

/// The products of unfused attention, a head each.
enum class Step : std::uint8_t {
  Scores,          ///< S = Q K'
  Output,          ///< O = P V, and dQ = dS K
  ScoresGradient,  ///< dP = dO V'
  KeyGradient,     ///< dV = P' dO, and dK = dS' Q
};

ProductPlan product_of(const AttentionPlan& plan, Step step) {
  ProductPlan p;
  const bool scores = step == Step::Scores || step == Step::ScoresGradient;
  p.m = step == Step::KeyGradient ? plan.keys : plan.queries;
  p.n = scores ? plan.keys : plan.size;
  p.k = scores ? plan.size : step == Step::KeyGradient ? plan.queries : plan.keys;
  p.type = plan.type;
  p.a_turned = step == Step::KeyGradient;
  p.b_turned = scores;
  p.batch = plan.heads;
  p.shared_b = plan.group;
  if (plan.type == Type::F32) {
    p.tile_m = p.tile_n = scores ? plan.tile_q : std::min(plan.size, 128);
    p.thread_m = p.thread_n = p.tile_m >= 128 ? 8 : 4;
    p.tile_k = p.threads() * 4 / p.tile_m;
  } else {
    const int across = scores ? 1 << log2_of(plan.warps) / 2 : std::min(plan.warps, std::max(1, plan.size / 64));
    p.tile_m = plan.tile_q;
    p.tile_n = scores ? plan.tile_k : plan.size;
    p.tile_k = 32;
    p.warp_m = plan.tile_q / (plan.warps / across);
    p.warp_n = p.tile_n / across;
    p.stages = 3;
    p.remedy = "take smaller tiles, or more warps";
  }
  if (step == Step::Scores) {
    p.epilogue = {AfterSum::Scale};
    p.scale = static_cast<float>(1 / std::sqrt(plan.size));
    if (plan.causal) p.epilogue.push_back(AfterSum::Mask);
  }
  return p;
}

void draft_unfused(const std::string& id, const Sizes& sizes, const Buffers& buffers, const GpuModel& model,
                   const config::Node& node, Draft& draft) {
  const AttentionPlan& plan = sizes.plan;
  const std::int64_t rows = plan.heads * plan.queries;
  const auto bytes = static_cast<std::uint64_t>(rows * plan.keys * bytes_of(plan.type));
  const int s = draft.buffer("s", bytes, FillZero{}), p = draft.buffer("p", bytes, FillZero{});
  const auto product = [&](const char* name, Step step, int a, int b, int c) {
    const ProductPlan of = product_of(plan, step);
    if (of.mma() && !of.deals())
      throw node.error("has tiles that do not leave a whole number of 16-byte copies for each of " +
                           std::to_string(of.threads()) + " threads",
                       "take larger tiles, or fewer warps");
    Launch launch = product_launch(of, id + name, node.where());
    launch.arguments = {pointer_to(a), pointer_to(b), pointer_to(c)};
    for (const std::int64_t extent : {of.m, of.n, of.k}) launch.arguments.push_back(number_argument(extent));
    draft.kernels.push_back(write_product(of, model, id + name, node.where()));
    draft.item.launches.push_back(std::move(launch));
  };
  const auto along_rows = [&](const char* name, RowOperation operation, std::initializer_list<int> tensors) {
    RowsPlan of;
    of.operation = operation;
    of.rows = rows;
    of.columns = plan.keys;
    of.type = plan.type;
    of.vector = 4 / bytes_of(plan.type);
    of.scale = static_cast<float>(1 / std::sqrt(plan.size));
    Launch launch;
    launch.kernel = id + name;
    launch.where = node.where();
    launch.grid = {static_cast<std::uint32_t>(rows), 1, 1};
    launch.block = {static_cast<std::uint32_t>(of.block), 1, 1};
    for (const int b : tensors) launch.arguments.push_back(pointer_to(b));
    launch.arguments.push_back(number_argument(plan.keys));
    draft.kernels.push_back(row_kernel(of, model, launch.kernel, node.where()));
    draft.item.launches.push_back(std::move(launch));
  };
  product("_qk", Step::Scores, buffers.q, buffers.k, s);
  along_rows("_softmax", RowOperation::Softmax, {s, p});
  product("_pv", Step::Output, p, buffers.v, buffers.o);
  draft.assume("unfused: S = Q K', softmax a block of 256 threads a row, O = P V; S and P in the inputs' type");
  if (!sizes.backward) return;
  const int d_o = draft.buffer("d_o", sizes.q_bytes, random_fill(plan.type, 4));
  const int dp = draft.buffer("dp", bytes, FillZero{}), ds = draft.buffer("ds", bytes, FillZero{});
  const int dq = draft.buffer("dq", sizes.q_bytes, FillZero{}), dk = draft.buffer("dk", sizes.k_bytes, FillZero{}),
            dv = draft.buffer("dv", sizes.k_bytes, FillZero{});
  product("_dp", Step::ScoresGradient, d_o, buffers.v, dp);
  along_rows("_ds", RowOperation::SoftmaxBack, {p, dp, ds});
  product("_dv", Step::KeyGradient, p, d_o, dv);
  product("_dq", Step::Output, ds, buffers.k, dq);
  product("_dk", Step::KeyGradient, ds, buffers.q, dk);
  draft.assume("backward: dP = dO V', dS a block a row, dV = P' dO, dQ = dS K, dK = dS' Q; dP and dS in memory");
}

}  // namespace

Draft draft_attention(const std::string& id, const config::Node& node, const GpuModel& model) {
  Draft draft;
  Sizes sizes;
  node.read_map([&](config::Map& m) { sizes = read(m, model, draft); });
  const Type type = sizes.plan.type;
  Buffers buffers;
  buffers.q = draft.buffer("q", sizes.q_bytes, random_fill(type, 1));
  buffers.k = draft.buffer("k", sizes.k_bytes, random_fill(type, 2));
  buffers.v = draft.buffer("v", sizes.k_bytes, random_fill(type, 3));
  buffers.o = draft.buffer("o", sizes.q_bytes, FillZero{});
  if (sizes.plan.wgmma)
    draft_flash_groups(id, sizes, buffers, model, node.where(), draft);
  else if (sizes.flash)
    draft_flash(id, sizes, buffers, model, node.where(), draft);
  else
    draft_unfused(id, sizes, buffers, model, node, draft);
  return draft;
}

}  // namespace forewarp::sketch
