#include "base/crew.h"

namespace forewarp {
namespace {

constexpr std::uint32_t kNoMore = 1u << 31;
// A step takes some hundred microseconds: spins before a waiting thread goes to sleep.
constexpr int kLooks = 2000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Waits until the value changes and returns it.
std::uint32_t wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (;;) {
    for (int look = 0; look < kLooks; ++look) {
      const std::uint32_t now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      pause();
    }
    value.wait(old, std::memory_order_acquire);
  }
}

}  // namespace

Crew::Crew(unsigned threads) {
  for (unsigned member = 1; member < threads; ++member) members_.emplace_back([this, member] { serve(member); });
}

Crew::~Crew() {
  steps_.fetch_or(kNoMore, std::memory_order_release);
  steps_.notify_all();
}

void Crew::step(std::uint32_t pieces) {
  if (members_.empty() || pieces < 2) {
    for (std::uint32_t piece = 0; piece < pieces; ++piece) call_(called_, piece, 0);
    return;
  }
  failures_.assign(pieces, nullptr);
  left_.store(pieces, std::memory_order_relaxed);
  busy_.store(static_cast<std::uint32_t>(members_.size()), std::memory_order_relaxed);
  steps_.fetch_add(1, std::memory_order_release);
  steps_.notify_all();
  take_part(0);
  for (std::uint32_t busy = busy_.load(std::memory_order_acquire); busy != 0;) busy = wait_while(busy_, busy);
  for (const std::exception_ptr& failure : failures_)
    if (failure) std::rethrow_exception(failure);
}

bool Crew::take(bool first, std::uint32_t& piece) {
  std::uint64_t left = left_.load(std::memory_order_relaxed);
  for (;;) {
    const auto begin = static_cast<std::uint32_t>(left >> 32), end = static_cast<std::uint32_t>(left);
    if (begin == end) return false;
    piece = first ? begin : end - 1;
    const std::uint64_t rest = first ? left + (std::uint64_t{1} << 32) : left - 1;
    if (left_.compare_exchange_weak(left, rest, std::memory_order_relaxed)) return true;
  }
}

void Crew::take_part(unsigned member) {
  for (std::uint32_t piece = 0; take(member == 0, piece);) {
    try {
      call_(called_, piece, member);
    } catch (...) {  // rethrown by the thread that asked for the step
      failures_[piece] = std::current_exception();
    }
  }
}

void Crew::serve(unsigned member) {
  for (std::uint32_t seen = 0;;) {
    seen = wait_while(steps_, seen);
    if ((seen & kNoMore) != 0) return;
    take_part(member);
    if (busy_.fetch_sub(1, std::memory_order_release) == 1) busy_.notify_all();
  }
}

}  // namespace forewarp
