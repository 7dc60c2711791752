#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "results/record.h"

namespace phasor::results {

/// Tells one file of a name from the next: records are only ever replaced.
struct Stamp {
  std::uint64_t file = 0;
  std::int64_t time = 0, bytes = 0;
  bool operator==(const Stamp&) const = default;
};
/// Nothing when there is no such file.
std::optional<Stamp> stamp_of(const std::string& file);

/// Writes `<folder>/<name>` as `write_whole` does in the place of the file that was `seen` there, which stays whole until the new one
/// has its name: false, and nothing is changed, when another one stands there by now. With nothing seen it is `write_new`.
bool write_instead(const std::string& folder, const std::string& name, const std::string& stem, std::string_view bytes,
                   const std::optional<Stamp>& seen);
/// The same with the file of a trial.
bool save_instead(const TrialRecord& record, const std::string& folder, const std::optional<Stamp>& seen);

/// Whether the trial has a whole record that is a result: a failure is none, and does not replace one.
bool has_result(const std::string& folder, const std::string& id);

}  // namespace phasor::results
