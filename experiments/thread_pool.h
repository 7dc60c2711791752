#pragma once

#include <cstdint>
#include <memory>

#include "core/base/function_ref.h"

namespace phasor {

/// A fixed number of threads that take numbered pieces of work. What a piece computes must depend on its number only,
/// so that the bits do not depend on how many threads there are. The number of the thread that took it, below threads(), says
/// whose scratch memory it may use.
class ThreadPool {
 public:
  explicit ThreadPool(std::int64_t threads);  // 1 = the calling thread alone
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::int64_t threads() const { return threads_; }
  /// Runs work(0, thread) .. work(count - 1, thread), each once, and returns when all are done. The first exception is thrown
  /// again.
  void run(std::int64_t count, FunctionRef<void(std::int64_t piece, std::int64_t thread)> work);

 private:
  struct Shared;
  std::int64_t threads_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace phasor
