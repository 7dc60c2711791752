#include "experiments/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/ops/gemm.h"

namespace phasor {

struct ThreadPool::Shared {
  std::mutex mutex;
  std::condition_variable start, finish;
  const FunctionRef<void(std::int64_t, std::int64_t)>* work = nullptr;
  std::int64_t count = 0, round = 0, busy = 0;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr error;
  bool quit = false;
  std::vector<std::thread> threads;

  void take(std::int64_t thread) {
    try {
      for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) (*work)(i, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next.store(count);
    }
  }

  void serve(std::int64_t thread) {
    use_one_thread_for_gemm();
    std::int64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        start.wait(lock, [&] { return quit || round != seen; });
        if (quit) return;
        seen = round;
      }
      take(thread);
      const std::lock_guard lock(mutex);
      if (--busy == 0) finish.notify_one();
    }
  }
};

ThreadPool::ThreadPool(std::int64_t threads) : threads_(threads), shared_(std::make_unique<Shared>()) {
  use_one_thread_for_gemm();
  for (std::int64_t i = 1; i < threads; ++i) shared_->threads.emplace_back([this, i] { shared_->serve(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->quit = true;
  }
  shared_->start.notify_all();
  for (std::thread& thread : shared_->threads) thread.join();
}

void ThreadPool::run(std::int64_t count, FunctionRef<void(std::int64_t, std::int64_t)> work) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->work = &work;
    shared_->count = count;
    shared_->next.store(0);
    shared_->error = nullptr;
    shared_->busy = threads_ - 1;
    ++shared_->round;
  }
  shared_->start.notify_all();
  shared_->take(0);
  std::unique_lock lock(shared_->mutex);
  shared_->finish.wait(lock, [&] { return shared_->busy == 0; });
  if (shared_->error) std::rethrow_exception(shared_->error);
}

}  // namespace phasor
