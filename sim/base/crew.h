// A pool of threads that runs the pieces of a step in parallel. A step begins when the one before has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace forewarp {

class Crew {
 public:
  /// The thread that calls run() counts as one of them, so 1 starts no other.
  explicit Crew(unsigned threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  unsigned size() const { return static_cast<unsigned>(members_.size()) + 1; }

  /// Calls work(piece, member) for each piece below `pieces` and returns when all are done. The caller (member 0) takes
  /// pieces from the front, the others from the back, so most stay with the same thread from step to step. Rethrows
  /// the exception of the lowest piece that failed.
  template <typename Work>
  void run(std::uint32_t pieces, Work&& work) {
    using Called = std::remove_reference_t<Work>;
    call_ = [](void* called, std::uint32_t piece, unsigned member) { (*static_cast<Called*>(called))(piece, member); };
    called_ = const_cast<void*>(static_cast<const void*>(std::addressof(work)));
    step(pieces);
  }

 private:
  void step(std::uint32_t pieces);
  void take_part(unsigned member);
  void serve(unsigned member);
  bool take(bool first, std::uint32_t& piece);

  void (*call_)(void*, std::uint32_t, unsigned) = nullptr;
  void* called_ = nullptr;
  std::vector<std::exception_ptr> failures_;         ///< by piece
  alignas(64) std::atomic<std::uint64_t> left_{0};   ///< first and end of the pieces not yet taken
  alignas(64) std::atomic<std::uint32_t> steps_{0};  ///< begun so far; highest bit: shut down
  alignas(64) std::atomic<std::uint32_t> busy_{0};   ///< members still in the current step
  std::vector<std::jthread> members_;
};

}  // namespace forewarp
