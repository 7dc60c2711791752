#include "core/spec/strict_json.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace phasor {

namespace {

/// Builds our value from the events of nlohmann's parser, so that no second tree is made and integers stay integers.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(StrictError& error) : error_(error) {}
  Json take() { return std::move(root_); }

  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(number_integer_t value) override { return put(Json(std::int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return put(Json(static_cast<std::int64_t>(value)));
    }
    error_.message = "integer beyond 2^63";
    return false;
  }
  bool number_float(number_float_t value, const string_t&) override { return put(Json(value)); }
  bool string(string_t& value) override { return put(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& exception) override {
    error_.offset = position > 0 ? position - 1 : 0;
    error_.message = exception.what();
    return false;
  }

 private:
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    stack_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }
  /// The pointers on the stack stay valid: a container only grows while it is the innermost one.
  Json& place(Json value) {
    if (stack_.empty()) return root_ = std::move(value);
    Json& parent = *stack_.back();
    if (parent.is_array()) return parent.as_array().emplace_back(std::move(value));
    return parent.as_object().emplace_back(std::move(key_), std::move(value)).second;
  }

  StrictError& error_;
  Json root_;
  std::string key_;
  std::vector<Json*> stack_;
};

}  // namespace

std::optional<Json> strict_json(std::string_view text, StrictError& error) {
  Builder builder(error);
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
  if (error.message.empty()) error.message = "not JSON";
  return std::nullopt;
}

}  // namespace phasor
