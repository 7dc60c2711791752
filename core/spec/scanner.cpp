#include "core/spec/scanner.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/base/text.h"
#include "core/spec/scan_text.h"

namespace phasor {

namespace {

constexpr std::size_t max_problems = 200;  // a file of another kind gives no novel

bool word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '.' || c == '+' || c == '-';
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), locator_(text) {}

  Scan run() {
    if (check_encoding()) scan_document();
    return std::move(scan_);
  }

 private:
  struct Open {
    char closer;
    std::size_t offset;
  };
  /// Where a list or an object stands between its elements.
  struct Between {
    bool need_comma = false;
    std::size_t value_end = 0;         // of the element before
    std::optional<std::size_t> comma;  // the last thing seen was this comma
  };

  bool check_encoding();
  void scan_document();
  Json value();
  Json known_value();
  Json word();
  Json object();
  Json list();
  Json too_deep();
  bool at_separator(Between& between, const char* wanted);
  void member(Json& object, std::unordered_map<std::string, int>& seen);
  std::string key();
  std::string quoted(bool is_key);
  void discard_value();
  void blank();
  void skip_garbage();
  std::string_view take_word();
  void close(const Between& between);

  bool end() const { return stopped_ || at_ >= text_.size(); }
  char here() const { return text_[at_]; }
  bool starts(std::string_view mark) const { return !end() && text_.substr(at_, mark.size()) == mark; }
  bool at_word() const { return !end() && word_character(here()); }
  bool at_quote() const { return quote_at(text_, at_).length > 0; }
  bool at_closer() const { return !end() && (here() == '}' || here() == ']'); }
  Position position(std::size_t offset) { return locator_.at(offset); }
  void report(std::size_t offset, std::string message);
  void mark_broken() { scan_.broken.push_back(path_); }

  std::string_view text_;
  Locator locator_;
  std::size_t at_ = 0;
  std::string path_;
  std::vector<Open> open_;
  bool stopped_ = false;
  Scan scan_;
};

void Scanner::report(std::size_t offset, std::string message) {
  if (stopped_) return;
  Problem problem{path_, position(offset), std::move(message), ""};
  if (scan_.problems.size() + 1 >= max_problems) {
    stopped_ = true;
    problem.message = "found too many mistakes, the rest was not read";
  }
  scan_.problems.push_back(std::move(problem));
}

bool Scanner::check_encoding() {
  std::string mistake;
  std::size_t offset = 0;
  if (starts("\xFF\xFE") || starts("\xFE\xFF")) {
    mistake = "found UTF-16 text, expected UTF-8, save it in that encoding";
  } else if (const std::optional<std::size_t> bad = find_bad_utf8(text_)) {
    offset = *bad;
    char byte[3] = {};
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned>(static_cast<unsigned char>(text_[offset])));
    mistake = "found the byte 0x" + std::string(byte) + ", expected UTF-8 text, save it in that encoding";
  }
  if (!mistake.empty()) {
    report(offset, mistake);
    mark_broken();
    return false;
  }
  if (starts("\xEF\xBB\xBF")) {
    report(0, "found a byte order mark, expected none, save as UTF-8 without it");
    at_ = 3;
    locator_ = Locator(text_, 3);
  }
  return true;
}

void Scanner::scan_document() {
  blank();
  if (end()) {
    report(0, "found nothing in it, expected a JSON object in { }");
    mark_broken();
    return;
  }
  scan_.value = value();
  blank();
  if (end()) return;
  report(at_, at_closer() ? "found " + glyph_at(text_, at_) + " that closes nothing, remove it"
                          : "found " + glyph_at(text_, at_) + " after the end of the document, expected nothing more");
}

Json Scanner::value() {
  blank();
  bool complained = false;
  const auto complain = [&] {
    if (!complained) report(at_, "found " + glyph_at(text_, at_) + ", expected a value");
    complained = true;
  };
  while (!end() && here() != ',' && !at_closer() && here() != '{' && here() != '[' && !at_quote() && !at_word()) {
    complain();
    skip_garbage();
    blank();
  }
  scan_.values.emplace_back(path_, position(at_));
  if (!end() && here() != ',' && !at_closer()) return known_value();
  complain();
  mark_broken();
  return Json();
}

Json Scanner::known_value() {
  if (here() == '{') return object();
  if (here() == '[') return list();
  if (at_quote()) return Json(quoted(false));
  return word();
}

Json Scanner::word() {
  const std::size_t start = at_;
  const std::string token(take_word());
  if (token == "true" || token == "false") return Json(token == "true");
  if (token == "null") return Json();
  const std::string lower = folded(token);
  const std::string found = "found " + token + ", expected ";
  if (lower == "true" || lower == "false") {
    report(start, found + lower);
    return Json(lower == "true");
  }
  if (lower == "null" || lower == "none" || lower == "nil" || lower == "undefined") {
    report(start, found + "null");
    return Json();
  }
  if (meant_as_number(token)) {
    NumberToken number = read_number(token);
    if (!number.mistake.empty()) report(start, number.mistake);
    if (number.value.is_null()) mark_broken();
    return std::move(number.value);
  }
  if (!end() && here() == '"') ++at_;  // rope": only the closing quote was typed
  report(start, "found " + token + " without quotes, expected \"" + token + "\"");
  return Json(token);
}

/// Deals with what may stand between two elements: commas and characters that do not belong there. True: look again.
bool Scanner::at_separator(Between& between, const char* wanted) {
  if (here() == ',') {
    if (!between.need_comma) report(at_, std::string("found \",\", expected ") + wanted + ", remove it");
    between.need_comma = false;
    between.comma = at_++;
    return true;
  }
  if (here() == ';' && between.need_comma) {
    report(at_, "found \";\", expected \",\"");
    between.need_comma = false;
    ++at_;
    return true;
  }
  if (here() == '{' || here() == '[' || at_quote() || at_word()) return false;
  report(at_, "found " + glyph_at(text_, at_) + ", expected " + (between.need_comma ? "\",\"" : wanted));
  skip_garbage();
  return true;
}

Json Scanner::object() {
  if (open_.size() >= static_cast<std::size_t>(max_depth)) return too_deep();
  const std::size_t start = at_++;
  open_.push_back({'}', start});
  Json result = Json::object();
  std::unordered_map<std::string, int> seen;
  Between between;
  while (blank(), !end() && !at_closer()) {
    if (at_separator(between, "a key")) continue;
    if (between.need_comma) report(between.value_end, "missing \",\" after this value");
    if (here() == '{' || here() == '[') {
      report(at_, "found " + glyph_at(text_, at_) + ", expected a key");
      discard_value();
    } else {
      member(result, seen);
    }
    between = {true, at_, std::nullopt};
  }
  close(between);
  return result;
}

Json Scanner::list() {
  if (open_.size() >= static_cast<std::size_t>(max_depth)) return too_deep();
  const std::size_t start = at_++;
  open_.push_back({']', start});
  Json result = Json::array();
  Between between;
  const std::size_t length = path_.size();
  while (blank(), !end() && !at_closer()) {
    if (at_separator(between, "a value")) continue;
    if (between.need_comma) report(between.value_end, "missing \",\" after this value");
    path_ += '[' + std::to_string(result.as_array().size()) + ']';
    result.push_back(value());
    path_.resize(length);
    between = {true, at_, std::nullopt};
  }
  close(between);
  return result;
}

/// The end of the innermost list or object, or what stands in its place.
void Scanner::close(const Between& between) {
  const Open open = open_.back();
  open_.pop_back();
  const std::string opener = open.closer == '}' ? "\"{\"" : "\"[\"";
  const std::string closer = open.closer == '}' ? "\"}\"" : "\"]\"";
  if (end()) {
    constexpr std::size_t told_levels = 8;  // a file cut off deep inside is one mistake, not one for each level
    if (open_.size() >= told_levels) return;
    report(open.offset, "found no " + closer + " for this " + opener + " before the end of the file");
  } else if (here() == open.closer) {
    if (between.comma) report(*between.comma, "found a comma before " + closer + ", expected none");
    ++at_;
  } else {
    const int line = position(open.offset).line;
    report(at_, "found " + glyph_at(text_, at_) + ", expected " + closer + " for the " + opener + " of line " +
                    std::to_string(line));
    // Either this bracket is mistyped, or ours is missing and this one belongs to an outer level.
    const bool outer = std::any_of(open_.begin(), open_.end(), [&](const Open& o) { return o.closer == here(); });
    if (!outer) ++at_;
  }
}

void Scanner::member(Json& object, std::unordered_map<std::string, int>& seen) {
  const std::size_t start = at_, length = path_.size();
  std::string name = key();
  const std::size_t key_end = at_;
  if (!path_.empty()) path_ += '.';
  path_ += name;
  const int line = position(start).line;
  scan_.keys.emplace_back(path_, position(start));
  const auto [first, is_new] = seen.emplace(name, line);
  if (!is_new) {
    report(start, "found the key " + json_quoted(name) + " again, first at line " + std::to_string(first->second) +
                      ", remove one");
  }
  blank();
  if (!end() && here() == ':') {
    ++at_;
  } else if (!end() && here() == '=') {
    report(at_++, "found \"=\", expected \":\"");
  } else {
    report(key_end, "missing \":\" after the key " + json_quoted(name));
  }
  Json read = value();
  if (is_new) object.as_object().emplace_back(std::move(name), std::move(read));
  path_.resize(length);
}

std::string Scanner::key() {
  if (at_quote()) return quoted(true);
  const std::size_t start = at_;
  std::string name(take_word());
  if (!end() && here() == '"') {
    ++at_;
    report(start, "found the key " + name + "\" without its opening quote, expected \"" + name + '"');
  } else {
    report(start, "found the key " + name + " without quotes, expected \"" + name + '"');
  }
  return name;
}

std::string Scanner::quoted(bool is_key) {
  const std::size_t start = at_;
  const Quote quote = quote_at(text_, start);
  const QuotedSpan span = find_quoted(text_, start, is_key);
  std::string text = decode_escapes(text_, span.first, span.last, [&](std::size_t offset, std::string message) {
    report(offset, std::move(message));
  });
  if (!span.closed) {
    report(start, "found a text that does not end on its line, expected a closing quote");
  } else if (quote.single || quote.typographic) {
    const std::string kind = quote.typographic ? "typographic" : "single";
    report(start, "found " + kind + " quotes, expected double quotes: " + json_quoted(text));
  }
  at_ = span.next;
  return text;
}

/// Reads a value that stands where none can be, so that its brackets stay in balance.
void Scanner::discard_value() {
  const std::size_t values = scan_.values.size(), keys = scan_.keys.size(), broken = scan_.broken.size();
  value();
  scan_.values.resize(values);
  scan_.keys.resize(keys);
  scan_.broken.resize(broken);
}

Json Scanner::too_deep() {
  report(at_, "found more than " + std::to_string(max_depth) + " nested levels, expected fewer");
  mark_broken();
  std::size_t depth = 0;
  do {
    if (at_quote()) {
      at_ = find_quoted(text_, at_, false).next;
      continue;
    }
    if (here() == '{' || here() == '[') ++depth;
    if (at_closer()) --depth;
    ++at_;
  } while (!end() && depth > 0);
  return Json();
}

void Scanner::blank() {
  while (!end()) {
    const std::size_t start = at_;
    if (here() == ' ' || here() == '\t' || here() == '\n' || here() == '\r') {
      ++at_;
    } else if (here() == '#' || starts("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      report(start, "found a comment, JSON has none, remove it");
    } else if (starts("/*")) {
      const std::size_t stop = text_.find("*/", at_ + 2);
      at_ = stop == std::string_view::npos ? text_.size() : stop + 2;
      report(start, stop == std::string_view::npos ? "found a comment that does not end, JSON has none, remove it"
                                                   : "found a comment, JSON has none, remove it");
    } else {
      return;
    }
  }
}

/// Skips at least one character and all that follow and belong nowhere either.
void Scanner::skip_garbage() {
  static constexpr std::string_view meaningful = " \t\r\n,:;{}[]\"'#";
  do {
    ++at_;
  } while (!end() && !at_word() && !at_quote() && meaningful.find(here()) == std::string_view::npos && !starts("//") &&
           !starts("/*"));
}

std::string_view Scanner::take_word() {
  const std::size_t start = at_;
  while (at_word()) ++at_;
  return text_.substr(start, at_ - start);
}

}  // namespace

Scan scan_json(std::string_view text) { return Scanner(text).run(); }

}  // namespace phasor
