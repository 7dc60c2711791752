#pragma once

#include <string>

namespace phasor::results {

/// UserError when the trial's file, or the folder's sweep.json, was written in a format of a later version, or when a folder has the
/// trial's name. Such a file is whole: it is not to be taken for a damaged one and written anew. Whoever is about to write there asks first.
void refuse_other_format(const std::string& folder, const std::string& id);
void refuse_other_manifest(const std::string& folder);

}  // namespace phasor::results
