#include "sweeps/report.h"

#include <string_view>

#include "core/base/error.h"

namespace phasor::sweeps {

void apply_settings(Document& experiment, const std::vector<std::string>& settings,
                    std::vector<std::string>& mistakes, const std::string& option) {
  constexpr std::string_view usual = "--set";  // what parse_setting calls it
  for (const std::string& setting : settings) {
    try {
      const auto [path, value] = parse_setting(setting);
      experiment.set(path, value, option);
    } catch (const UserError& error) {
      const std::string message = error.what();
      mistakes.push_back(message.starts_with(usual) ? option + message.substr(usual.size()) : message);
    }
  }
}

void require_none(const std::vector<const Document*>& documents, const std::vector<std::string>& mistakes) {
  std::string all;
  const auto add = [&](const std::string& text) { all += (all.empty() ? "" : "\n") + text; };
  for (const Document* document : documents) {
    try {
      document->require_none();
    } catch (const UserError& error) {
      add(error.what());
    }
  }
  for (const std::string& mistake : mistakes) add(mistake);
  if (!all.empty()) throw UserError(all);
}

}  // namespace phasor::sweeps
