#include "cli/options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <iostream>
#include <utility>

#include "cli/piped.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace phasor::cli {

namespace po = boost::program_options;

namespace {
// Numbers arrive as text and are read by from_chars: the library would follow the user's locale.
struct Integer {
  std::string name;
  std::optional<std::int64_t>* target;
  std::int64_t lowest;
};

void read_integer(const Integer& option, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty() || value < option.lowest) {
    throw UserError(
        fmt::format("--{}: found \"{}\", expected an integer of at least {}", option.name, text, option.lowest));
  }
  *option.target = value;
}

/// "a" and "b"
std::string all_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + ('"' + words[i] + '"');
  return text;
}
}  // namespace

struct Options::Inside {
  std::string usage, about, what;
  po::options_description shown{"options"}, hidden;
  po::positional_options_description places;
  std::string* positional = nullptr;
  std::vector<std::string>* positionals = nullptr;
  std::vector<std::string>* pairs = nullptr;
  bool required = false;
  std::vector<Integer> integers;
  std::vector<std::pair<std::string, std::string>> texts;  // name, help
  std::vector<std::string> names = {"--help"};
};

Options::Options(std::string usage, std::string about) : inside_(std::make_unique<Inside>()) {
  inside_->usage = std::move(usage);
  inside_->about = std::move(about);
}

Options::~Options() = default;

void Options::flag(const std::string& name, bool& target, const std::string& help) {
  inside_->shown.add_options()(name.c_str(), po::bool_switch(&target), help.c_str());
  inside_->names.push_back("--" + name);
}

void Options::text(const std::string& name, std::string& target, const std::string& help) {
  inside_->shown.add_options()(name.c_str(), po::value(&target)->value_name("TEXT"), help.c_str());
  inside_->texts.emplace_back(name, help);
  inside_->names.push_back("--" + name);
}

void Options::integer(const std::string& name, std::optional<std::int64_t>& target, std::int64_t lowest,
                      const std::string& help) {
  inside_->shown.add_options()(name.c_str(), po::value<std::string>()->value_name("N"), help.c_str());
  inside_->integers.push_back({name, &target, lowest});
  inside_->names.push_back("--" + name);
}

void Options::list(const std::string& name, std::vector<std::string>& target, const std::string& value,
                   const std::string& help) {
  inside_->shown.add_options()(name.c_str(), po::value(&target)->value_name(value)->composing(), help.c_str());
  inside_->names.push_back("--" + name);
}

void Options::pairs(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  list(name, target, "KEY=VALUE", help);
  inside_->pairs = &target;
}

void Options::positional(const std::string& what, std::string& target, bool required) {
  inside_->what = what;
  inside_->positional = &target;
  inside_->required = required;
}

void Options::positionals(const std::string& what, std::vector<std::string>& target) {
  inside_->what = what;
  inside_->positionals = &target;
}

void Options::hidden(const std::string& name, std::optional<std::int64_t>& target) {
  inside_->hidden.add_options()(name.c_str(), po::value<std::string>(), "");
  inside_->integers.push_back({name, &target, 0});
}

bool Options::parse(const std::vector<std::string>& arguments) {
  Inside& in = *inside_;
  in.shown.add_options()("help", "this text");
  in.hidden.add_options()("positional", po::value<std::vector<std::string>>(), "");
  in.places.add("positional", -1);
  po::options_description all;
  all.add(in.shown).add(in.hidden);
  po::variables_map found;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(arguments).options(all).positional(in.places).style(style).run(), found);
    po::notify(found);
  } catch (const po::unknown_option& error) {
    const std::string name = error.get_option_name();
    const std::optional<std::string> meant = nearest(name, in.names);
    throw UserError("unknown option " + name +
                    (meant ? ", did you mean " + *meant + "?" : ", expected " + quoted_list(in.names)));
  } catch (const po::error& error) {
    throw UserError(std::string(error.what()) + "; usage: " + in.usage);
  }
  if (found.count("help") > 0) {
    std::cout << "usage: " << in.usage << "\n\n" << in.about << "\n\n" << in.shown;
    return false;
  }
  for (const auto& [name, help] : in.texts) {
    if (found.count(name) > 0 && found[name].as<std::string>().empty())
      throw UserError(fmt::format("--{}: found an empty text, expected {}; or leave the option out", name, help));
  }
  for (const Integer& option : in.integers) {
    if (found.count(option.name) > 0) read_integer(option, found[option.name].as<std::string>());
  }
  std::vector<std::string> rest =
      found.count("positional") > 0 ? found["positional"].as<std::vector<std::string>>() : std::vector<std::string>{};
  if (in.pairs != nullptr && !in.pairs->empty()) {
    const auto pair = std::stable_partition(rest.begin(), rest.end(), [](const auto& word) { return word.find('=') == std::string::npos; });
    in.pairs->insert(in.pairs->end(), pair, rest.end());
    rest.erase(pair, rest.end());
  }
  if (in.positionals != nullptr) {
    *in.positionals = rest;
    return true;
  }
  if (rest.size() > 1)
    throw UserError("found " + all_of(rest) + ", expected one " + in.what + "; usage: " + in.usage);
  if (rest.empty() && in.required) throw UserError("no " + in.what + " is given; usage: " + in.usage);
  if (!rest.empty() && in.positional == nullptr) throw UserError("unexpected \"" + rest[0] + "\"; usage: " + in.usage);
  if (!rest.empty()) keep_piped(*in.positional = rest[0]);
  return true;
}

}  // namespace phasor::cli
