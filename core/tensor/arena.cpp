#include "core/tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/error.h"
#include "core/graph/device.h"

namespace phasor {

namespace {

constexpr std::size_t huge_page = 2 << 20;

/// Says how much was asked for. No memory is needed to say it.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::size_t bytes) { std::snprintf(text_, sizeof text_, "out of memory: %zu bytes were asked for", bytes); }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[80];
};

std::size_t rounded(std::size_t bytes, std::size_t unit = 64) { return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit; }

}  // namespace

Arena::~Arena() {
  for (void* slab : slabs_) device_ != nullptr ? device_->release(slab) : std::free(slab);
}

void* Arena::slab(std::size_t bytes) const {
  if (device_ != nullptr) return device_->allocate(bytes);
  const bool huge = bytes >= huge_page;
  void* memory = std::aligned_alloc(huge ? huge_page : 64, bytes);
  if (memory == nullptr) throw OutOfMemory(bytes);
  if (huge) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish; without it the pages are small
  return memory;
}

/// Blocks are cut from slabs, each about as large as all before it together. Large ones ask for pages of 2 MB: a step walks
/// through tens of megabytes, and pages of 4 KB would cost it a fifth of its reading speed (docs/performance.md).
std::byte* Arena::cut(std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  const std::size_t usual = 0;  // every block is a slab of its own, so that running over its end is seen
#else
  const bool own_slab = device_ != nullptr && device_->guards_blocks();
  const std::size_t usual = own_slab ? 0 : std::clamp<std::size_t>(slab_bytes_, 1 << 18, 32 << 20);
#endif
  if (bytes > left_) {
    const std::size_t wanted = std::max(bytes, usual), size = rounded(wanted, wanted >= huge_page ? huge_page : 64);
    slabs_.push_back(slab(size));
    slab_bytes_ += size;
    next_ = static_cast<std::byte*>(slabs_.back());
    left_ = size;
  }
  left_ -= bytes;
  return std::exchange(next_, next_ + bytes);
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
    std::byte* data = cut(size);
    block = &blocks_.emplace_back();
    block->home = this;
    block->data = data;
    block->bytes = size;
    ++system_blocks_;
    system_bytes_ += static_cast<std::int64_t>(size);
  }
  if (poison_) device_ != nullptr ? device_->fill(block->data, 0xff, size)
                                  : static_cast<void>(std::memset(block->data, 0xff, size));  // a NaN in f32 and f64
  return block;
}

void Arena::release(Storage* storage) {
  PHASOR_CHECK(storage->home == this, "a block returns to the arena it came from");
  Bucket& to = bucket(storage->bytes);
  storage->next = to.free;
  to.free = storage;
}

}  // namespace phasor
