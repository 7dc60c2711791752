#include "core/tensor/arena.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/error.h"

namespace phasor {

namespace {
std::size_t rounded(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64; }
}  // namespace

Arena::~Arena() {
  for (Storage* block : blocks_) {
    block->~Storage();
    std::free(block);
  }
}

Arena::Bucket& Arena::bucket(std::size_t bytes) {
  const auto place = std::lower_bound(buckets_.begin(), buckets_.end(), bytes,
                                      [](const Bucket& b, std::size_t size) { return b.bytes < size; });
  if (place != buckets_.end() && place->bytes == bytes) return *place;
  return *buckets_.insert(place, Bucket{bytes, nullptr});
}

Storage* Arena::allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  Bucket& from = bucket(size);
  Storage* block = from.free;
  if (block != nullptr) {
    from.free = block->next;
    block->references.store(1, std::memory_order_relaxed);
  } else {
    void* memory = std::aligned_alloc(64, Storage::header + size);
    if (memory == nullptr) throw std::bad_alloc();
    block = new (memory) Storage;
    block->home = this;
    block->bytes = size;
    blocks_.push_back(block);
    ++system_blocks_;
    system_bytes_ += static_cast<std::int64_t>(size);
  }
  if (poison_) std::memset(block->data(), 0xff, size);  // all ones is a NaN in f32 and f64
  return block;
}

void Arena::release(Storage* storage) {
  PHASOR_CHECK(storage->home == this, "a block returns to the arena it came from");
  Bucket& to = bucket(storage->bytes);
  storage->next = to.free;
  to.free = storage;
}

}  // namespace phasor
