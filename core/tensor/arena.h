#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace phasor {

class Arena;
class Device;

/// One block of memory, 64-byte aligned, counted by the tensors that share it.
struct Storage {
  std::atomic<std::int32_t> references{1};
  Arena* home = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;  // of the data
  Storage* next = nullptr;
};

/// Memory whose addresses repeat: a freed block waits for the next request of its size. A step that asks for the same
/// sizes in the same order gets the same addresses, and after the first step nothing is taken from the system.
///
/// One arena belongs to one worker: its tensors are made and dropped by one thread at a time. It must outlive them.
class Arena {
 public:
  /// `device`: whose memory it hands out; null: the processor's.
  explicit Arena(Device* device = nullptr) : device_(device) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Storage* allocate(std::size_t bytes);
  void release(Storage* storage);
  Device* device() const { return device_; }

  /// Blocks made so far: stays constant once the sizes of a step have been seen.
  std::int64_t system_blocks() const { return system_blocks_; }
  std::int64_t system_bytes() const { return system_bytes_; }
  /// Tests: fill every block with NaN before it is handed out, so that reading what nobody wrote shows.
  void poison(bool on) { poison_ = on; }

 private:
  struct Bucket {
    std::size_t bytes;
    Storage* free;
  };
  Bucket& bucket(std::size_t bytes);
  std::byte* cut(std::size_t bytes);
  void* slab(std::size_t bytes) const;

  std::vector<Bucket> buckets_;  // sorted by size; a step uses some tens of sizes
  std::deque<Storage> blocks_;  // beside the memory: what nobody writes to takes no room in the machine
  std::vector<void*> slabs_;
  std::size_t slab_bytes_ = 0;
  std::byte* next_ = nullptr;  // of the last slab
  std::size_t left_ = 0;
  std::int64_t system_blocks_ = 0, system_bytes_ = 0;
  bool poison_ = false;
  Device* device_;
};

}  // namespace phasor
