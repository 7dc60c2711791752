#pragma once

#include <string>
#include <string_view>

namespace phasor::results {

/// The bytes of a file; UserError naming it when it cannot be read.
std::string read_file(const std::string& path);

/// Writes a file that the user named: as `write_whole`, but a device or a pipe is written to, never replaced.
void write_named(const std::string& path, std::string_view bytes);

/// Writes `<folder>/<name>` so that a reader sees the old file, the new file or none, whatever happens in between: the
/// bytes go to `<folder>/.<stem>.<pid>.tmp`, reach the disk, and are renamed; then the folder reaches the disk too.
/// UserError naming the path when there is no room, no permission or no folder; nothing is left behind then.
void write_whole(const std::string& folder, const std::string& name, const std::string& stem, std::string_view bytes);

}  // namespace phasor::results
