#include "tests/cuda/emulation.h"

#include <algorithm>
#include <bit>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <fmt/format.h>
#include <link.h>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <sys/mman.h>
#include <thread>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace phasor::emulation {

namespace {

namespace context = boost::context;

constexpr unsigned warp_size = 32, most_threads = 1024;
constexpr std::size_t most_shared = 227 << 10, page = 4096, stack_bytes = 256 << 10;

std::string text(const Where& where) {
  std::string_view file = where.file_name();
  const std::size_t core = file.rfind("core/");
  if (core != std::string_view::npos) file.remove_prefix(core);
  return fmt::format("{}:{}", file, where.line());
}

bool same(const Where& a, const Where& b) {
  return a.line() == b.line() && (a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name());
}

/// Carries threads, one after the other: a thread that never waits needs no stack of its own.
struct Worker {
  context::fiber inside, outside;
};

enum class State : std::uint8_t { not_begun, ready, at_barrier, at_warp, ended };

struct Thread {
  State state = State::not_begun;
  Worker* worker = nullptr;
  Where where;
  unsigned source = 0;
  std::uint64_t bits = 0, result = 0;
};

/// Lanes of a warp that wait for each other.
struct Meeting {
  unsigned mask, arrived;
  WarpKind kind;
  Where where;
};
struct Warp {
  unsigned ended = 0;  // lanes
  std::vector<Meeting> meetings;
};

/// Dynamic shared memory that ends where the page behind it cannot be touched.
class SharedMemory {
 public:
  SharedMemory() {
    constexpr std::size_t size = (most_shared + page - 1) / page * page;
    memory_ =
        static_cast<std::byte*>(mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    PHASOR_CHECK(memory_ != MAP_FAILED && mprotect(memory_ + size, page, PROT_NONE) == 0,
                 "shared memory of the emulation");
    end_ = memory_ + size;
  }
  void poison(std::size_t bytes) {
    begin_ = end_ - (bytes + 15) / 16 * 16;
    std::memset(begin_, 0xff, static_cast<std::size_t>(end_ - begin_));
  }
  std::byte* data() const { return begin_; }

 private:
  std::byte* memory_;
  std::byte* end_;
  std::byte* begin_ = nullptr;
};

/// What the calling thread has of the thread-local memory of the library that `address` is in: its __shared__
/// variables.
std::pair<void*, std::size_t> static_shared(const void* address) {
  struct Search {
    std::uintptr_t address;
    std::pair<void*, std::size_t> found{nullptr, 0};
  } search{reinterpret_cast<std::uintptr_t>(address)};
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* to) {
        auto& wanted = *static_cast<Search*>(to);
        bool inside = false;
        std::size_t bytes = 0;
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const auto& part = library->dlpi_phdr[i];
          const std::uintptr_t begin = library->dlpi_addr + part.p_vaddr;
          if (part.p_type == PT_LOAD)
            inside = inside || (wanted.address >= begin && wanted.address < begin + part.p_memsz);
          if (part.p_type == PT_TLS) bytes = part.p_memsz;
        }
        if (inside && library->dlpi_tls_data != nullptr) wanted.found = {library->dlpi_tls_data, bytes};
        return inside ? 1 : 0;
      },
      &search);
  return search.found;
}

class Machine {
 public:
  void set_order(unsigned order) {
    const std::lock_guard lock(mutex_);
    order_number_ = order;
  }
  void run_grid(dim3 grid, dim3 threads, std::size_t shared, const void* kernel, const std::function<void()>& body);
  void barrier(int predicate, int* count, const Where& where);
  std::uint64_t warp(WarpKind kind, unsigned mask, std::uint64_t bits, unsigned source, const Where& where);
  unsigned current() const { return current_; }
  std::byte* shared() const { return shared_->data(); }

 private:
  std::vector<std::uint64_t> order_of(std::uint64_t count) const;
  void run_block();
  void begin_threads();
  void carry_on();
  context::fiber carry(Worker& worker, context::fiber&& from);
  void enter(unsigned thread);
  void suspend();
  void end_thread();
  void release();
  [[noreturn]] void stuck() const;
  Thread& own() { return threads_[current_]; }

  std::mutex mutex_;  // one grid at a time
  unsigned order_number_ = 0;
  const std::function<void()>* body_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::uint64_t> order_;
  std::size_t next_ = 0;  // thread to begin, in order
  unsigned current_ = 0, alive_ = 0, arrived_ = 0;
  int sum_ = 0, counted_ = 0;
  Where barrier_;
  std::exception_ptr failure_;
  std::optional<SharedMemory> shared_;
};

Machine& machine() {
  static Machine one;
  return one;
}

std::vector<std::uint64_t> Machine::order_of(std::uint64_t count) const {
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (order_number_ == 1) std::reverse(order.begin(), order.end());
  if (order_number_ < 2) return order;
  std::uint64_t state = order_number_;
  for (std::uint64_t left = count; left > 1; --left) {  // Fisher and Yates, with the random numbers of Knuth's MMIX
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[left - 1], order[(state >> 33) % left]);
  }
  return order;
}

void Machine::run_grid(dim3 grid, dim3 threads, std::size_t shared, const void* kernel,
                       const std::function<void()>& body) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t count = std::uint64_t{threads.x} * threads.y * threads.z;
  PHASOR_CHECK(count > 0 && count <= most_threads && threads.z <= 64,
               fmt::format("a block has {} threads, at most 1024", count));
  PHASOR_CHECK(grid.x < 1u << 31 && grid.y < 1u << 16 && grid.z < 1u << 16,
               fmt::format("a grid of {} x {} x {} blocks", grid.x, grid.y, grid.z));
  PHASOR_CHECK(shared <= most_shared, fmt::format("{} bytes of shared memory, at most {}", shared, most_shared));
  if (!shared_) shared_.emplace();
  gridDim = grid;
  blockDim = threads;
  body_ = &body;
  const auto [variables, bytes] = static_shared(kernel);
  const std::uint64_t plane = std::uint64_t{grid.x} * grid.y;
  const std::vector<std::uint64_t> blocks = order_of(plane * grid.z);
  order_ = order_of(count);
  for (const std::uint64_t block : blocks) {
    blockIdx = {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block % plane / grid.x),
                static_cast<unsigned>(block / plane)};
    shared_->poison(shared);
    if (bytes > 0) std::memset(variables, 0xff, bytes);
    run_block();
  }
}

void Machine::run_block() {
  threads_.assign(order_.size(), Thread{});
  warps_.resize((order_.size() + warp_size - 1) / warp_size);
  for (Warp& warp : warps_) {
    warp.ended = 0;
    warp.meetings.clear();
  }
  next_ = 0;
  alive_ = static_cast<unsigned>(order_.size());
  arrived_ = 0;
  sum_ = 0;
  try {
    begin_threads();
    carry_on();
  } catch (...) {
    idle_.clear();
    workers_.clear();  // unwinds what still waits
    failure_ = nullptr;
    throw;
  }
}

/// Every thread runs to its first wait, or to its end.
void Machine::begin_threads() {
  while (next_ < order_.size()) {
    if (idle_.empty()) {
      Worker& fresh = *workers_.emplace_back(std::make_unique<Worker>());
      fresh.inside = context::fiber(std::allocator_arg, context::protected_fixedsize_stack(stack_bytes),
                                    [this, &fresh](context::fiber&& from) { return carry(fresh, std::move(from)); });
      idle_.push_back(&fresh);
    }
    Worker& worker = *idle_.back();
    idle_.pop_back();
    worker.inside = std::move(worker.inside).resume();
    if (failure_) std::rethrow_exception(failure_);
  }
}

/// In rounds, until all have ended.
void Machine::carry_on() {
  while (alive_ > 0) {
    bool moved = false;
    for (const std::uint64_t thread : order_) {
      if (threads_[thread].state != State::ready) continue;
      moved = true;
      enter(static_cast<unsigned>(thread));
      Worker& worker = *own().worker;
      worker.inside = std::move(worker.inside).resume();
      if (failure_) std::rethrow_exception(failure_);
    }
    if (!moved) stuck();
  }
}

context::fiber Machine::carry(Worker& worker, context::fiber&& from) {
  worker.outside = std::move(from);
  for (;;) {
    while (next_ < order_.size() && !failure_) {
      enter(static_cast<unsigned>(order_[next_++]));
      own().worker = &worker;
      own().state = State::ready;
      try {
        (*body_)();
        end_thread();
      } catch (const context::detail::forced_unwind&) {
        throw;
      } catch (...) {
        failure_ = std::current_exception();
      }
    }
    idle_.push_back(&worker);
    worker.outside = std::move(worker.outside).resume();
  }
}

void Machine::enter(unsigned thread) {
  current_ = thread;
  threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / (blockDim.x * blockDim.y)};
}

void Machine::suspend() {
  Worker& worker = *own().worker;
  worker.outside = std::move(worker.outside).resume();
}

void Machine::end_thread() {
  own().state = State::ended;
  warps_[current_ / warp_size].ended |= 1u << current_ % warp_size;
  --alive_;
  if (arrived_ > 0 && arrived_ == alive_) release();
}

void Machine::release() {
  for (Thread& thread : threads_)
    if (thread.state == State::at_barrier) thread.state = State::ready;
  arrived_ = 0;
  counted_ = std::exchange(sum_, 0);
}

void Machine::barrier(int predicate, int* count, const Where& where) {
  if (arrived_ == 0) barrier_ = where;
  PHASOR_CHECK(same(barrier_, where),
               fmt::format("threads of one block wait at different barriers, {} and {}", text(barrier_), text(where)));
  own().state = State::at_barrier;
  own().where = where;
  sum_ += predicate;
  if (++arrived_ == alive_)
    release();
  else
    suspend();
  if (count != nullptr) *count = counted_;
}

std::uint64_t Machine::warp(WarpKind kind, unsigned mask, std::uint64_t bits, unsigned source, const Where& where) {
  const unsigned lane = current_ % warp_size, first = current_ - lane;
  Warp& warp = warps_[current_ / warp_size];
  PHASOR_CHECK((mask >> lane & 1) != 0,
               fmt::format("{}: lane {} is not in the mask {:#010x}", text(where), lane, mask));
  PHASOR_CHECK(first + static_cast<unsigned>(std::bit_width(mask)) <= threads_.size(),
               fmt::format("{}: the mask {:#010x} has lanes that the block has not", text(where), mask));
  PHASOR_CHECK((mask & warp.ended) == 0,
               fmt::format("{}: lane {} of the mask has ended", text(where), std::countr_zero(mask & warp.ended)));
  Thread& self = own();
  self.where = where;
  self.bits = bits;
  self.source = source;
  auto meeting =
      std::find_if(warp.meetings.begin(), warp.meetings.end(), [&](const Meeting& m) { return m.mask == mask; });
  if (meeting == warp.meetings.end()) meeting = warp.meetings.insert(meeting, {mask, 0, kind, where});
  PHASOR_CHECK(meeting->kind == kind && same(meeting->where, where),
               fmt::format("lanes of one warp meet at {} and {}", text(where), text(meeting->where)));
  meeting->arrived |= 1u << lane;
  if (meeting->arrived != mask) {
    self.state = State::at_warp;
    suspend();
    return own().result;
  }
  warp.meetings.erase(meeting);
  const auto lanes = [&](auto each) {
    for (unsigned left = mask; left != 0; left &= left - 1) each(static_cast<unsigned>(std::countr_zero(left)));
  };
  unsigned set = 0;
  lanes([&](unsigned l) { set |= threads_[first + l].bits != 0 ? 1u << l : 0u; });
  lanes([&](unsigned l) {
    Thread& each = threads_[first + l];
    PHASOR_CHECK(kind != WarpKind::shuffle || (mask >> each.source & 1) != 0,
                 fmt::format("{}: lane {} reads lane {}, which is not in the mask", text(where), l, each.source));
    each.result = kind == WarpKind::shuffle ? threads_[first + each.source].bits : set;
    each.state = State::ready;
  });
  return self.result;
}

void Machine::stuck() const {
  for (std::size_t t = 0; t < threads_.size(); ++t)
    if (threads_[t].state != State::ended)
      throw InternalError(fmt::format("{}: thread {} of block ({}, {}, {}) waits for others that do not come",
                                      text(threads_[t].where), t, blockIdx.x, blockIdx.y, blockIdx.z));
  throw InternalError("a block has ended and has not");
}

using Work = std::vector<std::function<void()>>;

/// What host threads capture, each for itself: others go on running (thread-local variables are shared memory here).
std::mutex captures_mutex;
std::map<std::thread::id, Work> captures;

/// Null without a capture on this thread.
Work* own_capture() {
  const std::lock_guard lock(captures_mutex);
  const auto place = captures.find(std::this_thread::get_id());
  return place != captures.end() ? &place->second : nullptr;
}

const Memory* memory = nullptr;  // of the device that works; one at a time does (EmulatedDevice::Access)

/// The memory of the device is open while one is there.
class Opening {
 public:
  Opening() {
    if (memory != nullptr) memory->open(true);
  }
  ~Opening() {
    if (memory != nullptr) memory->open(false);
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
};

/// Whether the process has a page there. Most numbers are no addresses, and most of the others are the device's.
bool is_mapped(std::uintptr_t address) {
  constexpr std::uintptr_t lowest = 1 << 16, end = std::uintptr_t{1} << 47;
  return address >= lowest && address < end &&
         msync(reinterpret_cast<void*>(address & ~(page - 1)), page, MS_ASYNC) == 0;
}

}  // namespace

void set_order(unsigned order) { machine().set_order(order); }

void run_grid(dim3 grid, dim3 threads, std::size_t shared, const void* kernel, const std::function<void()>& body) {
  machine().run_grid(grid, threads, shared, kernel, body);
}
void barrier(int predicate, int* count, Where where) { machine().barrier(predicate, count, where); }
std::uint64_t warp(WarpKind kind, unsigned mask, std::uint64_t bits, unsigned source, Where where) {
  return machine().warp(kind, mask, bits, source, where);
}
unsigned lane() { return machine().current() % warp_size; }
std::byte* dynamic_shared() { return machine().shared(); }

void set_memory(const Memory* of_device) { memory = of_device; }

void check_addresses(const void* argument, std::size_t bytes) {
  if (memory == nullptr) return;
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= bytes; at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(argument) + at, sizeof word);
    PHASOR_CHECK(memory->holds(word) || !is_mapped(word),
                 fmt::format("byte {} of an argument is the address {:#x} of memory of the host", at, word));
  }
}

void enqueue(std::function<void()> work) {
  if (Work* const captured = own_capture()) {
    captured->push_back(std::move(work));
    return;
  }
  const Opening opening;
  work();
}
void begin_capture() {
  const std::lock_guard lock(captures_mutex);
  captures[std::this_thread::get_id()].clear();
}
std::vector<std::function<void()>> end_capture() {
  const std::lock_guard lock(captures_mutex);
  const auto place = captures.find(std::this_thread::get_id());
  PHASOR_CHECK(place != captures.end(), "a capture ends on the thread that began it");
  Work work = std::move(place->second);
  captures.erase(place);
  return work;
}

}  // namespace phasor::emulation
