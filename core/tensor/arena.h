#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace phasor {

class Arena;

/// Head of one block of memory, counted by the tensors that share it. The data follow, 64-byte aligned.
struct Storage {
  std::atomic<std::int32_t> references{1};
  Arena* home = nullptr;
  std::size_t bytes = 0;  // of the data
  Storage* next = nullptr;

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + header; }
  static constexpr std::size_t header = 64;
};
static_assert(sizeof(Storage) <= Storage::header);

/// Memory whose addresses repeat: a freed block waits for the next request of its size. A step that asks for the same
/// sizes in the same order gets the same addresses, and after the first step nothing is taken from the system.
///
/// One arena belongs to one lane: its tensors are made and dropped by one thread at a time. It must outlive them.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Storage* allocate(std::size_t bytes);
  void release(Storage* storage);

  /// Blocks taken from the system so far: stays constant once the sizes of a step have been seen.
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

  std::vector<Bucket> buckets_;  // sorted by size; a step uses some tens of sizes
  std::vector<Storage*> blocks_;
  std::int64_t system_blocks_ = 0, system_bytes_ = 0;
  bool poison_ = false;
};

}  // namespace phasor
