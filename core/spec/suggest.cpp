#include "core/spec/suggest.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/spec/json.h"

namespace phasor {

namespace {

/// Names other programs use for what ours call otherwise; too far apart for an edit distance.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> synonyms = {{
    {"learning_rate", "lr"},
    {"epsilon", "eps"},
    {"batch_size", "batch"},
    {"hidden_size", "dim"},
    {"hidden_dim", "dim"},
    {"d_model", "dim"},
    {"num_heads", "heads"},
    {"n_heads", "heads"},
    {"n_head", "heads"},
    {"num_layers", "layers"},
    {"n_layers", "layers"},
    {"n_layer", "layers"},
    {"max_steps", "steps"},
    {"num_steps", "steps"},
    {"random_seed", "seed"},
    {"grad_clip", "clip"},
    {"warmup_steps", "warmup"},
    {"kind", "name"},
}};

/// A key that is valid somewhere in the whole configuration.
struct Known {
  std::string path;         // "model.encoding.theta"
  std::string section;      // "model.encoding"
  std::string name;         // "theta"
  std::string alternative;  // "rope", the alternative it needs; empty when it needs none
};

void collect(const FieldList& fields, const std::string& section, const std::string& alternative,
             std::vector<Known>& all) {
  for (const Field& field : fields.all()) {
    const std::string path = section.empty() ? field.name : section + "." + field.name;
    all.push_back({path, section, field.name, alternative});
    if (field.kind == FieldKind::object) collect(*field.members, path, alternative, all);
    if (field.kind != FieldKind::named) continue;
    for (const std::string& choice : field.choices) collect(field.preview(choice), path, choice, all);
  }
}

std::vector<std::string> names_of(const FieldList& fields) {
  std::vector<std::string> names;
  for (const Field& field : fields.all()) names.push_back(field.name);
  return names;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

std::string joined(const std::vector<std::string>& names) {
  constexpr std::size_t limit = 4;
  std::string text;
  const std::size_t shown = std::min(names.size(), limit);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return names.size() > shown ? text + " or others" : text;
}

bool same_name(const std::string& a, const std::string& b) { return folded(a) == folded(b); }

/// The key is a field of another alternative of the object it stands in.
std::optional<std::string> under_another_name(const std::string& key, const KeyPlace& place) {
  if (!place.named) return std::nullopt;
  std::vector<std::string> owners;
  std::string spelled = key;
  for (const std::string& choice : place.named->choices) {
    if (choice == place.alternative) continue;
    for (const std::string& name : names_of(place.named->preview(choice))) {
      if (!same_name(name, key)) continue;
      owners.push_back(choice);
      spelled = name;
    }
  }
  if (owners.empty()) return std::nullopt;
  return "unknown key " + json_quoted(key) + ": \"" + spelled + "\" is a field of " + place.named->name + " " +
         joined(owners) + ", not of " + place.alternative;
}

/// The key is valid in another section.
std::optional<std::string> in_another_section(const std::string& key, const KeyPlace& place,
                                              const std::vector<Known>& all) {
  std::vector<std::string> paths, plain;
  for (const Known& known : all) {
    if (known.section == place.path || !same_name(known.name, key)) continue;
    add_once(known.alternative.empty() ? plain : paths, known.path);
  }
  // A place that is always there is likelier meant than one that needs another plugin.
  const std::vector<std::string>& best = plain.empty() ? paths : plain;
  if (best.empty()) return std::nullopt;
  return "unknown key " + json_quoted(key) + " here, it belongs to " + joined(best);
}

std::optional<std::string> misspelled_elsewhere(const std::string& key, const KeyPlace& place,
                                                const std::vector<Known>& all) {
  std::vector<std::string> names, paths;
  for (const Known& known : all) add_once(names, known.name);
  const std::optional<std::string> name = nearest(key, names);
  if (!name) return std::nullopt;
  for (const Known& known : all) {
    if (known.name == *name && known.section != place.path) add_once(paths, '"' + known.path + '"');
  }
  if (paths.empty()) return std::nullopt;
  return "unknown key " + json_quoted(key) + ", did you mean " + joined(paths) + "?";
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> best = nearest(word, candidates);
  return best ? ", did you mean \"" + *best + "\"?" : "";
}

std::string unknown_key_message(const std::string& key, const KeyPlace& place) {
  std::vector<std::string> here = names_of(place.fields);
  if (place.named) here.insert(here.begin(), "name");
  const std::string unknown = "unknown key " + json_quoted(key);
  const auto same = std::find_if(here.begin(), here.end(), [&](const auto& name) { return same_name(name, key); });
  if (same != here.end()) return unknown + ", did you mean \"" + *same + "\"?";

  std::vector<Known> all;
  collect(place.root, "", "", all);
  if (const auto message = under_another_name(key, place)) return *message;
  if (const auto message = in_another_section(key, place, all)) return *message;
  if (const std::string near = did_you_mean(key, here); !near.empty()) return unknown + near;

  // A synonym, itself perhaps misspelled, stands for our name, here or in another section.
  std::vector<std::string> foreign;
  for (const auto& [other, ours] : synonyms) foreign.emplace_back(other);
  if (const std::optional<std::string> synonym = nearest(key, foreign)) {
    const auto at = std::find_if(synonyms.begin(), synonyms.end(), [&](const auto& s) { return s.first == *synonym; });
    const std::string ours(at->second);
    if (std::find(here.begin(), here.end(), ours) != here.end()) return unknown + ", did you mean \"" + ours + "\"?";
    if (const auto message = misspelled_elsewhere(ours, place, all)) {
      return unknown + message->substr(message->find(", did you mean"));
    }
  }
  if (const auto message = misspelled_elsewhere(key, place, all)) return *message;
  if (here.empty()) return unknown + ", expected no keys here";
  return unknown + ", expected " + quoted_list(here);
}

}  // namespace phasor
