#include "results/merge.h"

#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "results/files.h"
#include "results/h5.h"
#include "results/manifest.h"

namespace phasor::results {
namespace {

/// Of the layout in layout.md, "The file of a whole sweep".
constexpr std::int64_t merged_version = 1;

/// In a sweep's folder every .h5 is a trial.
void refuse_inside(const std::string& folder, const std::string& out) {
  const std::filesystem::path file = std::filesystem::weakly_canonical(out);
  if (file.parent_path() != std::filesystem::weakly_canonical(folder)) return;
  throw UserError(out + ": stands among the records of " + folder + ", expected a file outside that folder");
}

}  // namespace

Merged merge_folder(const std::string& folder, const std::string& out) {
  const Manifest manifest = read_manifest(folder);
  refuse_inside(folder, out);
  std::set<std::string> wanted;
  for (const ManifestTrial& cell : manifest.trials) {
    if (cell.excluded.empty()) wanted.insert(cell.id);
  }
  const Folder found = load_folder(folder, Steps::dropped);
  Merged merged;
  h5::Writer file;
  file.attribute("format", merged_version);
  file.attribute("kind", std::string("sweep"));
  file.attribute("name", manifest.name);
  file.column("manifest", std::vector<std::string>{parse_json(read_file(folder + "/sweep.json"), "sweep.json").canonical()});
  file.group("trials");
  for (const TrialRecord& record : found.records) {  // in order of id
    if (!wanted.contains(record.id)) {
      ++merged.others;
      continue;
    }
    const std::string image = read_file(folder + "/" + record.id + ".h5");
    file.copy(h5::Reader(image), "trials/" + record.id);
    ++merged.trials;
  }
  for (const Damaged& damaged : found.damaged) {
    const bool ours = wanted.contains(std::filesystem::path(damaged.file).stem().string());
    if (ours) merged.damaged.push_back(damaged);
    merged.others += ours ? 0 : 1;
  }
  merged.missing = static_cast<std::int64_t>(wanted.size()) + manifest.awaiting - merged.trials;
  file.attribute("complete", 1);
  write_named(out, file.image());
  return merged;
}

}  // namespace phasor::results
