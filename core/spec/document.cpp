#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

#include "core/base/error.h"
#include "core/spec/problems.h"
#include "core/spec/scan_text.h"
#include "core/spec/scanner.h"
#include "core/spec/strict_json.h"

namespace phasor {

namespace {

using Places = std::vector<std::pair<std::string, Position>>;

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& file) : value_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int value() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void refuse(const std::string& file, int error) {
  const char* advice = error == ENOENT ? ", check the path" : ", expected a JSON file that can be read";
  throw UserError(file + ": cannot be read: " + std::strerror(error) + advice);
}

std::string read_text(const std::string& file) {
  const FileDescriptor descriptor(file);
  if (descriptor.value() < 0) refuse(file, errno);
  struct stat status {};
  if (::fstat(descriptor.value(), &status) != 0) refuse(file, errno);
  if (S_ISDIR(status.st_mode)) throw UserError(file + ": found a directory, expected a JSON file");
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    const ssize_t count = ::read(descriptor.value(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(file, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Of equal paths (a key given twice) the first in the text stays first.
void sort_places(Places& places) {
  std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

const Position* find_place(const Places& places, const std::string& path) {
  const auto at = std::lower_bound(places.begin(), places.end(), path,
                                   [](const auto& place, const std::string& wanted) { return place.first < wanted; });
  return at != places.end() && at->first == path ? &at->second : nullptr;
}

std::string parent_of(const std::string& path) {
  const std::size_t cut = path.find_last_of(".[");
  return cut == std::string::npos ? "" : path.substr(0, cut);
}

bool at_or_below(const std::string& path, const std::string& top) {
  return path.compare(0, top.size(), top) == 0 &&
         (path.size() == top.size() || top.empty() || path[top.size()] == '.' || path[top.size()] == '[');
}

/// One problem is one line, whatever characters a key holds.
std::string printable(const std::string& path) {
  const std::string quoted = json_quoted(path);
  return quoted.find('\\') == std::string::npos ? path : quoted;
}

std::string full_text(const std::string& name, const Problem& problem) {
  std::string text = problem.origin.empty() ? name : problem.origin;
  if (problem.position.line > 0) {
    text += ':' + std::to_string(problem.position.line) + ':' + std::to_string(problem.position.column);
  }
  text += ": ";
  if (!problem.path.empty()) text += printable(problem.path) + ": ";
  return text + problem.message;
}

}  // namespace

Document Document::read(const std::string& file) { return parse(read_text(file), file); }

Document Document::parse(std::string text, std::string name) {
  Document document;
  document.files_ = {std::move(name)};
  Scan scan = scan_json(text);
  document.values_ = std::move(scan.values);
  document.keys_ = std::move(scan.keys);
  document.broken_ = std::move(scan.broken);
  document.problems_ = std::move(scan.problems);
  sort_places(document.values_);
  sort_places(document.keys_);
  std::sort(document.broken_.begin(), document.broken_.end());
  document.value_ = std::move(scan.value);
  if (!document.problems_.empty()) return document;

  // The scanner forgives; what counts as JSON is decided by the library.
  StrictError error;
  if (std::optional<Json> value = strict_json(text, error)) {
    document.value_ = std::move(*value);
  } else {
    document.problems_.push_back({"", Locator(text).at(error.offset), "not JSON: " + error.message, ""});
  }
  return document;
}

Position Document::position_of(const std::string& path) const {
  for (std::string here = path;; here = parent_of(here)) {
    if (const Position* position = find_place(values_, here)) return *position;
    if (here.empty()) return {};
  }
}

Position Document::key_position_of(const std::string& path) const {
  const Position* position = find_place(keys_, path);
  return position ? *position : position_of(path);
}

bool Document::broken(const std::string& path) const {
  return std::binary_search(broken_.begin(), broken_.end(), path);
}

const std::string& Document::file_of(const std::string& path) const {
  return files_[static_cast<std::size_t>(position_of(path).file)];
}

void Document::rename(const std::string& path, const std::string& from, const std::string& to) {
  const std::string old_path = path.empty() ? from : path + "." + from, new_path = path.empty() ? to : path + "." + to;
  Json* object = path.empty() ? &value_ : &value_.make_path(path);
  for (auto& [key, value] : object->as_object()) {
    if (key == from) key = to;
  }
  const auto moved = [&](const std::string& place) { return new_path + place.substr(old_path.size()); };
  for (Places* places : {&values_, &keys_}) {
    for (auto& [place, position] : *places) {
      if (at_or_below(place, old_path)) place = moved(place);
    }
    sort_places(*places);
  }
  for (std::string& place : broken_) {
    if (at_or_below(place, old_path)) place = moved(place);
  }
  std::sort(broken_.begin(), broken_.end());
}

Document Document::read_extended(const std::string& file, const Complete& complete) {
  std::vector<std::string> chain;
  return read_link(file, chain, complete);
}

Document Document::read_link(const std::string& file, std::vector<std::string>& chain, const Complete& complete) {
  Document document = read(file);
  chain.push_back(file);
  const Json* extends = document.value_.find("extends");
  if (extends == nullptr) return document;
  if (!extends->is_string()) {
    document.problem("extends", "found " + extends->canonical() + ", expected the name of a file in double quotes");
  } else {
    namespace fs = std::filesystem;
    const std::string next = (fs::path(file).parent_path() / extends->as_string()).lexically_normal().string();
    const auto same = [&](const std::string& link) { return fs::weakly_canonical(link) == fs::weakly_canonical(next); };
    if (const auto first = std::find_if(chain.begin(), chain.end(), same); first != chain.end()) {
      std::string links;
      for (auto link = first; link != chain.end(); ++link) links += *link + " -> ";
      document.problem("extends", "found a circle, " + links + next + ", expected a file that does not extend this one");
    } else {
      try {
        Document below = read_link(next, chain, complete);
        if (complete) complete(below);
        document.put_on(std::move(below));
      } catch (const UserError& error) {
        document.problem("extends", error.what());
      }
    }
  }
  document.value_.erase("extends");
  return document;
}

/// Of equal places those of this document stay first.
void Document::put_on(Document below) {
  const int own = static_cast<int>(files_.size());
  files_.insert(files_.end(), below.files_.begin(), below.files_.end());
  for (Places* places : {&below.values_, &below.keys_}) {
    for (auto& [place, position] : *places) position.file += own;
  }
  values_.insert(values_.end(), below.values_.begin(), below.values_.end());
  keys_.insert(keys_.end(), below.keys_.begin(), below.keys_.end());
  sort_places(values_);
  sort_places(keys_);
  for (Problem& problem : below.problems_) {
    problem.position.file += own;
    problems_.push_back(std::move(problem));
  }
  for (std::string& place : below.broken_) {
    if (value_.at_path(place) == nullptr) broken_.push_back(std::move(place));
  }
  std::sort(broken_.begin(), broken_.end());
  if (!value_.is_object() || !below.value_.is_object()) return;  // a mistake of the reader
  // Member by member: the "name" of a whole file chooses nothing.
  for (const auto& [key, value] : value_.as_object()) merge(below.value_[key], value);
  value_ = std::move(below.value_);
}

void Document::set(const std::string& path, const Json& value, const std::string& origin) {
  Json patch;
  patch.make_path(path) = value;
  merge(value_, patch);
  std::erase_if(broken_, [&](const std::string& broken) { return at_or_below(broken, path); });
  origins_.emplace_back(path, origin);
}

void Document::add_problem(std::string path, Position position, std::string message) {
  Problem problem{std::move(path), position, std::move(message), ""};
  for (auto origin = origins_.rbegin(); origin != origins_.rend() && problem.origin.empty(); ++origin) {
    if (at_or_below(problem.path, origin->first)) problem.origin = origin->second;
  }
  // A plugin refuses its options as a whole: where one of them came from the command line, that is the likelier culprit.
  const Json* section = problem.path.empty() ? nullptr : value_.at_path(problem.path);
  const bool named = section != nullptr && section->is_object() && section->find("name") != nullptr;
  for (auto origin = origins_.rbegin(); named && origin != origins_.rend() && problem.origin.empty(); ++origin) {
    if (at_or_below(origin->first, problem.path)) problem.origin = origin->second + " " + origin->first;
  }
  if (!problem.origin.empty()) problem.position = {};
  problems_.push_back(std::move(problem));
}

void Document::problem(std::string path, std::string message) {
  if (broken(path)) return;
  const Position position = position_of(path);
  add_problem(std::move(path), position, std::move(message));
}

void Document::key_problem(std::string path, std::string message) {
  const Position position = key_position_of(path);
  add_problem(std::move(path), position, std::move(message));
}

void Document::require_none() const {
  if (problems_.empty()) return;
  std::vector<const Problem*> sorted;
  for (const Problem& problem : problems_) sorted.push_back(&problem);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem* a, const Problem* b) {
    return std::tie(a->position.file, a->position.line, a->position.column) <
           std::tie(b->position.file, b->position.line, b->position.column);
  });
  std::string text;
  for (const Problem* problem : sorted) {
    if (!text.empty()) text += '\n';
    text += full_text(files_[static_cast<std::size_t>(problem->position.file)], *problem);
  }
  throw UserError(text);
}

Json parse_json(std::string_view text, const std::string& name) {
  Document document = Document::parse(std::string(text), name);
  document.require_none();
  return std::move(document.value());
}

}  // namespace phasor
