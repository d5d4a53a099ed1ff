#include "timing/skip/loop_progress.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <ranges>
#include <tuple>

#include "timing/skip/estimate.h"

namespace forewarp {
namespace {

// Blocks of an SM whose rates differ by less from their mean keep step in the long run: sgemm_coalesced_4096, where the
// older leads by 12 % for a while, reads as little from memory as if all did (measured); sgemm_shared_tiled, whose
// blocks never keep step in --full, differs by 25 to 43 %.
constexpr double kInStep = 0.2;
constexpr double kPartsApart = 2;  // iterations: each end of a move is known to within one

/// How many older blocks each has beside it on its SM.
std::vector<std::uint32_t> ages(const LoopProgress& progress) {
  std::vector<std::size_t> order(progress.blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const BlockLoop &left = progress.blocks[a], &right = progress.blocks[b];
    return std::tie(left.sm, left.linear) < std::tie(right.sm, right.linear);
  });
  std::vector<std::uint32_t> ages(order.size());
  for (std::size_t i = 1; i < order.size(); ++i)
    if (progress.blocks[order[i]].sm == progress.blocks[order[i - 1]].sm) ages[order[i]] = ages[order[i - 1]] + 1;
  return ages;
}

/// Means of `moved` over the blocks of one class and age on SMs that hold as many warps.
std::vector<double> means_of(const LoopProgress& progress, std::span<const double> moved,
                             std::span<const std::uint32_t> ages) {
  struct Sum {
    double moved = 0, blocks = 0;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Sum> groups;
  const auto group = [&](std::size_t b) -> Sum& {
    return groups[{progress.blocks[b].cls, progress.blocks[b].sm_warps, ages[b]}];
  };
  for (std::size_t b = 0; b < moved.size(); ++b) {
    Sum& sum = group(b);
    sum.moved += moved[b];
    sum.blocks += 1;
  }
  std::vector<double> means(moved.size());
  for (std::size_t b = 0; b < moved.size(); ++b) means[b] = group(b).moved / group(b).blocks;
  return means;
}

/// Iterations by which each block's SM gained on the mean of those that do the same, as far as that will last: some SMs
/// are faster for good, since fewer share their GPC's ports or their data; others are so by chance, or fetch for the
/// rest and are caught up.
std::vector<double> lasting_gains(const LoopProgress& progress, std::span<const double> moved,
                                  std::span<const double> in_second_half) {
  const std::vector<std::uint32_t> alike(moved.size());
  const std::vector<double> mean = means_of(progress, moved, alike),
                            mean_second = means_of(progress, in_second_half, alike);
  std::size_t sms = 0;
  for (const BlockLoop& block : progress.blocks) sms = std::max<std::size_t>(sms, block.sm + 1);
  std::vector<double> first(sms), second(sms), blocks(sms);
  for (std::size_t b = 0; b < moved.size(); ++b) {
    const std::uint16_t sm = progress.blocks[b].sm;
    const double of_second = in_second_half[b] - mean_second[b];
    first[sm] += moved[b] - mean[b] - of_second;
    second[sm] += of_second;
    ++blocks[sm];
  }
  for (std::size_t sm = 0; sm < sms; ++sm) {
    first[sm] /= std::max(1.0, blocks[sm]);
    second[sm] /= std::max(1.0, blocks[sm]);
  }
  const double lasts = lasting_share(first, second);
  std::vector<double> lasting;
  for (const BlockLoop& block : progress.blocks) lasting.push_back(lasts * (first[block.sm] + second[block.sm]));
  return lasting;
}

}  // namespace

std::vector<double> moved_between(const LoopProgress& earlier, const LoopProgress& later) {
  std::vector<double> moved(later.blocks.size());
  for (std::size_t b = 0; b < moved.size(); ++b) moved[b] = later.blocks[b].position - earlier.blocks[b].position;
  return moved;
}

bool keep_step(const LoopProgress& earlier, const LoopProgress& later) {
  for (std::size_t b = 0; b < later.blocks.size(); ++b) {
    const std::vector<double>&before = earlier.blocks[b].parts, &after = later.blocks[b].parts;
    if (after.size() < 2) continue;
    double least = after[0] - before[0], most = least;
    for (std::size_t part = 1; part < after.size(); ++part) {
      const double moved = after[part] - before[part];
      least = std::min(least, moved);
      most = std::max(most, moved);
    }
    if (most - least > kPartsApart && most - least > kInStep * most) return false;
  }
  return true;
}

std::vector<double> steady_moves(const LoopProgress& progress, std::span<const double> moved,
                                 std::span<const double> in_second_half, std::span<const double> in_all) {
  const std::vector<std::uint32_t> alike(moved.size());
  std::vector<double> means = means_of(progress, moved, alike);
  const std::vector<double> of_all = means_of(progress, in_all, alike),
                            by_age = means_of(progress, in_all, ages(progress));
  const bool older_lead = std::ranges::any_of(std::views::iota(std::size_t{0}, moved.size()), [&](std::size_t b) {
    return std::abs(by_age[b] - of_all[b]) > kInStep * of_all[b];
  });
  const std::vector<double> gains = lasting_gains(progress, moved, in_second_half);
  for (std::size_t b = 0; b < moved.size(); ++b)
    means[b] = std::max(0.0, means[b] * (older_lead ? by_age[b] / of_all[b] : 1) + gains[b]);
  return means;
}

void keep_clusters_together(const LoopProgress& progress, std::span<std::uint32_t> counts) {
  struct Least {
    std::uint32_t count = ~std::uint32_t{0}, period = 1;
  };
  std::map<std::uint64_t, Least> clusters;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    Least& least = clusters[progress.blocks[b].cluster];
    least.count = std::min(least.count, counts[b]);
    least.period = std::lcm(least.period, progress.blocks[b].phase_period);
  }
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const Least& least = clusters[progress.blocks[b].cluster];
    counts[b] = least.count - least.count % least.period;
  }
}

}  // namespace forewarp
