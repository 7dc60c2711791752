#include "core/base/hash.h"

#include <boost/uuid/detail/sha1.hpp>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/string_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <cstdio>

namespace phasor {

std::string uuid5(std::string_view text) {
  const boost::uuids::uuid space = boost::uuids::string_generator()("99536c47-deac-5c2b-842d-d9614cc2a462");
  boost::uuids::name_generator_sha1 generator(space);
  return boost::uuids::to_string(generator(text.data(), text.size()));
}

struct ContentHash::State {
  boost::uuids::detail::sha1 sha1;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {}
ContentHash::ContentHash(const ContentHash& other) : state_(std::make_unique<State>(*other.state_)) {}
ContentHash::ContentHash(ContentHash&& other) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash other) noexcept {
  state_.swap(other.state_);
  return *this;
}
ContentHash::~ContentHash() = default;

void ContentHash::update(std::string_view bytes) { update_raw(bytes.data(), bytes.size()); }

void ContentHash::update_raw(const void* data, std::size_t size) { state_->sha1.process_bytes(data, size); }

std::string ContentHash::hex() const {
  boost::uuids::detail::sha1 finished = state_->sha1;
  boost::uuids::detail::sha1::digest_type digest;
  finished.get_digest(digest);
  char text[33] = {};
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", digest[0], digest[1], digest[2], digest[3]);
  return text;
}

}  // namespace phasor
