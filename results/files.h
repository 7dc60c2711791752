#pragma once

#include <string>
#include <string_view>

namespace phasor::results {

/// The bytes of a file; UserError naming it when it cannot be read.
std::string read_file(const std::string& path);

/// Writes a file that the user named: as `write_whole`, but a device or a pipe is written to, never replaced.
void write_named(const std::string& path, std::string_view bytes);

/// Writes `<folder>/<name>` so that a reader sees the old file, the new file or none, whatever happens in between: the
/// bytes go to `<folder>/.<stem>.<pid>.<random>.tmp`, reach the disk, and are renamed; then the folder reaches the disk
/// too. UserError naming the path when there is no room, no permission or no folder; nothing is left behind then.
void write_whole(const std::string& folder, const std::string& name, const std::string& stem, std::string_view bytes);

/// The same, but only where there is no such file yet: false, and nothing is changed, when there is one, whoever made it
/// and on whatever machine. Of several at once one succeeds. What need not outlive the machine does not wait for the disk.
enum class Durable { no, yes };
bool write_new(const std::string& folder, const std::string& name, const std::string& stem, std::string_view bytes, Durable);

/// `<folder>/checkpoints/<id>.h5`: where a trial keeps its checkpoint, and a runner looks whether it got somewhere.
std::string checkpoint_file(const std::string& folder, const std::string& id);

/// Removes what writers of `stem` left aside when they were killed.
void remove_asides(const std::string& folder, const std::string& stem);

}  // namespace phasor::results
