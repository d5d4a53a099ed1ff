// The family `matmul`: a product of matrices, and what follows from its keys.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "hardware/occupancy.h"
#include "sketch/families/groups.h"
#include "sketch/families/product.h"

namespace forewarp::sketch {
namespace {

/// Extents of a tile, powers of two in a range.
void read_extents(const config::Node& node, std::initializer_list<int*> to, int least, int most) {
  const std::vector<config::Node> list = node.list(to.size(), to.size());
  std::size_t i = 0;
  for (int* extent : to) {
    *extent = static_cast<int>(list[i].integer(least, most));
    if (!is_power_of_two(*extent)) throw list[i].error("is " + std::to_string(*extent), "tiles are powers of two");
    ++i;
  }
}

class Reader {
 public:
  Reader(config::Map& m, ProductPlan& plan, Draft& draft, const GpuModel& model)
      : m_(m), plan_(plan), draft_(draft), model_(model) {}

  void read() {
    read_type_and_shape();
    read_design();
    if (plan_.wgmma)
      read_group_tiles();
    else if (plan_.mma())
      read_tensor_tiles();
    else
      read_float_tiles();
    refuse_foreign();
    read_order();
    check_shares();
    read_epilogue();
  }

 private:
  std::optional<config::Node> given(const char* key, const std::string& otherwise) {
    auto found = m_.find(key);
    if (!found) draft_.assume(std::string(key) + ": " + otherwise);
    return found;
  }

  void read_type_and_shape() {
    const std::vector<config::Node> shape = m_.at("shape").list(3, 3);
    std::int64_t* const extents[] = {&plan_.m, &plan_.n, &plan_.k};
    for (std::size_t i = 0; i < 3; ++i) *extents[i] = shape[i].integer(1, 1 << 20);
    if (const auto type = given("type", "f16, sums in f32"))
      plan_.type = read_type(*type, {Type::F32, Type::F16, Type::Bf16, Type::Tf32, Type::S8, Type::E4m3});
    // Words of 16 bits alone are turned on their way: other types need B with k along its rows.
    plan_.b_turned = plan_.mma() && bytes_of(plan_.type) != 2;
    if (const auto b = m_.find("b")) {
      const bool turned = b->choice({"rows", "columns"}) == 1;
      if (plan_.b_turned && !turned)
        throw b->error("does not suit " + std::string(type_name(plan_.type)),
                       "tensor cores take k along its rows: columns");
      plan_.b_turned = turned;
    } else if (plan_.b_turned) {
      draft_.assume("b: columns, k runs along the rows of B");
    }
    if (const auto a = m_.find("a")) {
      plan_.a_turned = a->choice({"rows", "columns"}) == 1;
      if (plan_.a_turned && plan_.type != Type::F16 && plan_.type != Type::Bf16)
        throw a->error("does not suit " + std::string(type_name(plan_.type)), "take f16 or bf16, or a: rows");
    }
    const int size = bytes_of(plan_.type);
    const bool in_rows[] = {plan_.a_turned, true, !plan_.a_turned || plan_.b_turned};
    for (std::size_t i = 0; i < 3; ++i)
      if (in_rows[i] && *extents[i] * size % kChunk != 0)
        throw shape[i].error("makes rows that are no whole 16-byte chunks",
                             "pad it to a multiple of " + std::to_string(kChunk / size));
    if (std::max({plan_.m * plan_.k, plan_.k * plan_.n, plan_.m * plan_.n}) >= std::int64_t{1} << 31)
      throw m_.at("shape").error("has a matrix of 2^31 elements or more", "a sketch counts them in 32 bits");
  }

  void read_design() {
    const auto copies = m_.find("copies"), math = m_.find("math");
    std::size_t which = plan_.mma() ? 0 : 1;
    if (math) which = math->choice({"mma", "fma", "wgmma"});
    std::size_t by = which == 2 ? 2 : plan_.mma() ? 0 : 1;
    if (copies) by = copies->choice({"async", "registers", "tma"});
    if ((which == 1) == plan_.mma())
      throw math->error("does not suit the type", plan_.mma() ? "write mma or wgmma" : "write fma");
    if (by == 0 && !plan_.mma()) throw copies->error("async needs tensor cores in a sketch", "leave it out for f32");
    if (by == 2 && !plan_.mma()) throw copies->error("tma needs tensor cores in a sketch", "leave it out for f32");
    plan_.by_registers = by == 1 && plan_.mma();
    if (which != 2 && plan_.type == Type::E4m3)
      throw m_.at("type").error("is multiplied by wgmma alone", "write math: wgmma, and take an H100 or H200");
    plan_.wgmma = which == 2;
    plan_.tma = by == 2;
    if (plan_.wgmma || plan_.tma) {
      const config::Node& about = plan_.wgmma ? *math : *copies;
      if (model_.sm < 90)
        throw about.error("needs a GPU of sm_90",
                          (plan_.wgmma ? "write mma" : "write async") + std::string(", or take an H100 or H200"));
      if (plan_.a_turned) throw about.error("takes A by rows in a sketch", "leave a out");
    }
    if (!plan_.wgmma) return read_cluster();
    if (const auto specialised = m_.find("specialised")) {
      plan_.specialised = specialised->boolean();
      if (plan_.specialised && !plan_.tma)
        throw specialised->error("is of tiles that TMA fetches", "write copies: tma, or leave it out");
    }
    read_cluster();
  }

  void read_cluster() {
    const auto cluster = m_.find("cluster");
    if (!cluster) return;
    constexpr int kMostBlocks = 8;  ///< that every GPU with clusters takes
    read_extents(*cluster, {&plan_.cluster_m, &plan_.cluster_n}, 1, kMostBlocks);
    if (plan_.cluster_m * plan_.cluster_n > kMostBlocks)
      throw cluster->error("has " + std::to_string(plan_.cluster_m * plan_.cluster_n) + " blocks", "8 are the most");
    if (plan_.clustered() && !plan_.specialised)
      throw cluster->error("is sketched where a warpgroup of its own asks TMA for tiles",
                           "write math: wgmma, copies: tma and specialised: true, or leave it out");
  }

  /// Blocks of a cluster fetch parts of one tile: rows of A by eight, columns of B by 64.
  void check_shares() const {
    constexpr int kLeastRows = 8, kLeastColumns = 64;
    const auto cluster = m_.find("cluster");
    if (!cluster) return;
    if (plan_.tile_m / plan_.cluster_n < kLeastRows || plan_.tile_n / plan_.cluster_m < kLeastColumns)
      throw cluster->error("leaves a block less than 8 rows of A or 64 columns of B to fetch",
                           "take fewer blocks, or a larger tile");
    if (plan_.group > 1 && plan_.group % plan_.cluster_m != 0)
      throw cluster->error("does not divide the " + std::to_string(plan_.group) + " rows of tiles of order",
                           "take an order that is a multiple of " + std::to_string(plan_.cluster_m));
  }

  /// TMA and wgmma take rows of 128 bytes.
  void check_row(const config::Node& tile) const {
    const int depth = kRowBytes / bytes_of(plan_.type);
    if (plan_.tile_k != depth)
      throw tile.error(
          "has " + std::to_string(plan_.tile_k) + " of k, and rows of 128 bytes are " + std::to_string(depth),
          "take k = " + std::to_string(depth));
  }

  void read_group_tiles() {
    const int depth = kRowBytes / bytes_of(plan_.type);
    plan_.tile_m = plan_.tile_n = 128, plan_.tile_k = depth, plan_.stages = 4;
    const auto tile = given("tile", "[128, 128, " + std::to_string(depth) + "]");
    if (tile) read_extents(*tile, {&plan_.tile_m, &plan_.tile_n, &plan_.tile_k}, 32, 256);
    if (plan_.tile_m < 64 || plan_.tile_n < 64)
      throw tile->error("is smaller than a warpgroup's product", "take 64 of m and n or more");
    if (tile) check_row(*tile);
    plan_.warp_m = plan_.tile_n > 128 || plan_.tile_m < 128 ? 64 : 128, plan_.warp_n = plan_.tile_n;
    const auto warp =
        given("warp", "[" + std::to_string(plan_.warp_m) + ", " + std::to_string(plan_.warp_n) + "], of a warpgroup");
    if (warp) read_extents(*warp, {&plan_.warp_m, &plan_.warp_n}, 64, 256);
    const config::Node& about = warp ? *warp : m_.node();
    if (plan_.warp_n != plan_.tile_n || plan_.warp_m > plan_.tile_m)
      throw about.error("is no tile of a warpgroup", "take rows that divide the tile's, and all of its columns");
    if (plan_.threads() > 1024)
      throw about.error("makes " + std::to_string(plan_.threads()) + " threads of a block",
                        "1024 is the most: take more rows a warpgroup");
    if (plan_.by_registers)
      read_no_ring();
    else if (const auto stages = given("stages", "4"))
      plan_.stages = static_cast<int>(stages->integer(2, 8));
    check_shared(about);
  }

  void read_no_ring() {
    plan_.stages = 1;
    plan_.ahead = false;
    if (const auto stages = m_.find("stages"); stages && stages->integer(1, 8) != 1)
      throw stages->error("is a ring, which copies through registers do not have",
                          "leave it out, or write copies: async");
  }

  void check_shared(const config::Node& about) const {
    const int most = model_.occupancy.shared_block_max_bytes;
    if (plan_.shared_bytes() > most)
      throw about.error("and the stages take " + std::to_string(plan_.shared_bytes()) + " bytes of shared memory; " +
                            std::to_string(most) + " are the most",
                        "take fewer stages or a smaller tile");
  }

  void read_tensor_tiles() {
    const int depth = step_depth(plan_.type);
    plan_.tile_m = plan_.tile_n = 128, plan_.warp_m = 64, plan_.warp_n = 32, plan_.stages = 3;
    plan_.tile_k = plan_.tma ? kRowBytes / bytes_of(plan_.type) : 2 * depth;
    if (const auto tile = given("tile", "[128, 128, " + std::to_string(plan_.tile_k) + "]")) {
      read_extents(*tile, {&plan_.tile_m, &plan_.tile_n, &plan_.tile_k}, 16, 256);
      if (plan_.tma) check_row(*tile);
    }
    const auto warp = given("warp", "[64, 32]");
    if (warp) read_extents(*warp, {&plan_.warp_m, &plan_.warp_n}, 16, 128);
    const config::Node& about = warp ? *warp : m_.node();
    if (plan_.warp_m > plan_.tile_m || plan_.warp_n > plan_.tile_n)
      throw about.error("is larger than the block's tile", "give a tile that warps divide");
    if (plan_.threads() > 1024)
      throw about.error("makes " + std::to_string(plan_.threads()) + " threads of a block",
                        "1024 is the most: take larger warp tiles");
    if (plan_.by_registers) {
      read_no_ring();
      if (const auto ahead = given("ahead", "false: a tile is fetched once the one before is multiplied"))
        plan_.ahead = ahead->boolean();
    } else {
      if (const auto stages = given("stages", "3")) plan_.stages = static_cast<int>(stages->integer(2, 8));
      if (const auto ahead = given("ahead", "true: words of the next step are fetched while one is multiplied"))
        plan_.ahead = ahead->boolean();
    }
    const int threads = plan_.threads();
    if ((!plan_.b_turned && plan_.tile_n < 64) || (plan_.a_turned && plan_.tile_m < 64) ||
        (!plan_.tma && !plan_.deals()))
      throw about.error(
          "and the tile do not leave a whole number of 16-byte copies for each of " + std::to_string(threads) +
              " threads",
          "take a larger tile, n (and m, of A by columns) at least 64, k at least " + std::to_string(depth));
    if (!plan_.by_registers && plan_.ahead && plan_.tile_k / depth % 2 != 0)
      throw m_.node().error("fetches words ahead in two sets, and has one step of k a tile",
                            "take a tile of k = " + std::to_string(2 * depth) + " or more, or ahead: false");
    check_shared(about);
  }

  void read_float_tiles() {
    plan_.tile_m = plan_.tile_n = 128, plan_.tile_k = 8;
    if (const auto tile = given("tile", "[128, 128, 8]"))
      read_extents(*tile, {&plan_.tile_m, &plan_.tile_n, &plan_.tile_k}, 4, 256);
    const auto thread = given("thread", "[8, 8]");
    if (thread) read_extents(*thread, {&plan_.thread_m, &plan_.thread_n}, 4, 16);
    const config::Node& about = thread ? *thread : m_.node();
    const int threads = plan_.tile_m * plan_.tile_n / (plan_.thread_m * plan_.thread_n);
    if (plan_.thread_m > plan_.tile_m || plan_.thread_n > plan_.tile_n || threads > 1024 || threads < 32 ||
        plan_.tile_m * plan_.tile_k != threads * 4 || plan_.tile_n * plan_.tile_k != threads * 4)
      throw about.error("and the tile do not give each thread one 16-byte load of A and one of B",
                        "take a tile of m x k and n x k = 4 times the threads");
    draft_.assume("copies: registers, 16 bytes a load, A stored transposed; the loop over a tile's k unrolled");
  }

  /// Keys of other designs.
  void refuse_foreign() {
    const auto refuse = [&](const char* key, const char* what, const char* remedy) {
      if (const auto node = m_.find(key)) throw node->error(what, remedy);
    };
    if (!plan_.wgmma)
      if (const auto specialised = m_.find("specialised"); specialised && specialised->boolean())
        throw specialised->error("is of wgmma, which TMA feeds", "write math: wgmma, or leave it out");
    if (!plan_.mma())
      for (const char* key : {"warp", "stages", "ahead"})
        refuse(key, "is of tensor cores", "leave it out for f32, whose threads have the tile that thread gives");
    else
      refuse("thread", "is of f32", "give the tile of a warp: warp");
    if (plan_.wgmma) refuse("ahead", "is of mma.sync; wgmma takes its factors from shared memory", "leave it out");
  }

  void only_tensor(const config::Node& node) const {
    if (!plan_.mma()) throw node.error("needs tensor cores in a sketch", "leave it out for f32");
  }

  void read_order() {
    if (const auto order = m_.find("order")) plan_.group = static_cast<int>(order->integer(1, 1 << 16));
    if (const auto parts = m_.find("split_k")) {
      plan_.parts = static_cast<int>(parts->integer(1, 64));
      if (plan_.parts > 1) {
        only_tensor(*parts);
        if (bytes_of(plan_.type) != 2) throw parts->error("takes f16 or bf16 in a sketch", "leave it out");
        if (plan_.tma && !plan_.wgmma)
          throw parts->error("of mma.sync takes copies: async or registers in a sketch", "leave one of the two out");
        if (plan_.group > 1)
          throw parts->error("hands out tiles along rows, and order says otherwise", "leave one of the two out");
      }
    }
    if (const auto stays = m_.find("persistent")) {
      if (stays->boolean()) {
        only_tensor(*stays);
        if (plan_.wgmma && !plan_.specialised)
          throw stays->error("is sketched where a warpgroup of its own asks TMA for tiles", "write specialised: true");
        if (plan_.clustered())
          throw stays->error("and cluster exclude each other in a sketch", "leave one of the two out");
        if (plan_.parts > 1 || plan_.by_registers || (plan_.tma && !plan_.wgmma))
          throw stays->error(plan_.parts > 1 ? "and split_k exclude each other in a sketch" : "needs copies: async",
                             "leave one of the two out");
        plan_.persistent = true;
      }
    }
  }

  void read_epilogue() {
    const auto node = m_.find("epilogue");
    if (!node) return;
    for (const config::Node& step : node->list(0, 8)) {
      constexpr AfterSum kSteps[] = {AfterSum::Bias, AfterSum::Relu, AfterSum::Gelu, AfterSum::Residual};
      const AfterSum what = kSteps[step.choice({"bias", "relu", "gelu", "residual"})];
      if ((what == AfterSum::Bias || what == AfterSum::Residual) && plan_.has(what))
        throw step.error("is there twice", "each has one tensor");
      plan_.epilogue.push_back(what);
    }
    if (!plan_.epilogue.empty() && (plan_.parts > 1 || plan_.type == Type::S8))
      throw node->error(
          plan_.parts > 1 ? "and split_k exclude each other in a sketch" : "takes floats, and the sums are integers",
          "leave one of the two out");
  }

  config::Map& m_;
  ProductPlan& plan_;
  Draft& draft_;
  const GpuModel& model_;
};

/// Blocks that are resident at once.
std::uint32_t resident(const Kernel& kernel, const Launch& launch, const GpuModel& model) {
  const Occupancy fits = compute_occupancy(model, kernel, launch.grid, launch.block, launch.dynamic_shared_bytes);
  return static_cast<std::uint32_t>(fits.blocks_per_sm * model.chip.sm_count);
}

}  // namespace

Draft draft_matmul(const std::string& id, const config::Node& node, const GpuModel& model) {
  Draft draft;
  ProductPlan plan;
  node.read_map([&](config::Map& m) { Reader(m, plan, draft, model).read(); });
  const auto bytes = [&](std::int64_t rows, std::int64_t columns, Type type) {
    return static_cast<std::uint64_t>(rows * columns * bytes_of(type));
  };
  Launch launch = product_launch(plan, id, node.where());
  const auto c_bytes =
      static_cast<std::uint64_t>(plan.m * plan.n * (plan.parts > 1 ? bytes_of(plan.type) : plan.result_bytes()));
  const int a = draft.buffer("a", bytes(plan.m, plan.k, plan.type), random_fill(plan.type));
  const int b = draft.buffer("b", bytes(plan.k, plan.n, plan.type), random_fill(plan.type, 2));
  if (plan.tma)
    launch.arguments = {map_of(a, plan.type, plan.m, plan.k, plan.tile_m / plan.cluster_n),
                        plan.b_turned ? map_of(b, plan.type, plan.n, plan.k, plan.tile_n / plan.cluster_m)
                                      : map_of(b, plan.type, plan.k, plan.n, plan.tile_k)};
  else
    launch.arguments = {pointer_to(a), pointer_to(b)};
  const int c = draft.buffer("c", c_bytes, FillZero{});
  int sums = c;
  if (plan.parts > 1)
    sums = draft.buffer(
        "sums", static_cast<std::uint64_t>(plan.parts) * static_cast<std::uint64_t>(plan.m * plan.n) * 4, FillZero{});
  launch.arguments.push_back(pointer_to(sums));
  if (plan.has(AfterSum::Bias))
    launch.arguments.push_back(
        pointer_to(draft.buffer("bias", bytes(1, plan.n, plan.beside()), random_fill(plan.beside(), 3))));
  if (plan.has(AfterSum::Residual))
    launch.arguments.push_back(
        pointer_to(draft.buffer("residual", bytes(plan.m, plan.n, plan.beside()), random_fill(plan.beside(), 4))));
  for (const std::int64_t extent : {plan.m, plan.n, plan.k}) launch.arguments.push_back(number_argument(extent));
  draft.kernels.push_back(write_product(plan, model, id, node.where()));
  if (plan.persistent) {
    draft.tiles = launch.grid.x;
    launch.grid.x = std::min(launch.grid.x, std::max(1u, resident(draft.kernels.back(), launch, model)));
    draft.assume("persistent: " + std::to_string(launch.grid.x) + " blocks, as many as are resident");
  }
  draft.item.launches.push_back(std::move(launch));
  if (plan.parts > 1) {
    Launch sum;
    sum.kernel = id + "_sum";
    sum.where = node.where();
    sum.grid = {static_cast<std::uint32_t>(ceiling(plan.m * plan.n, 256)), 1, 1};
    sum.block = {256, 1, 1};
    sum.arguments = {pointer_to(sums), pointer_to(c), number_argument(plan.m * plan.n)};
    draft.kernels.push_back(sum_parts(plan.parts, plan.type, model, sum.kernel, node.where()));
    draft.item.launches.push_back(std::move(sum));
  }
  return draft;
}

}  // namespace forewarp::sketch
