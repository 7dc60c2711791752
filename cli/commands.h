#pragma once

#include <string>
#include <vector>

namespace phasor::cli {

/// Exit codes that every command shares: 0 done, 1 failed, 2 a mistake of the user (file, option, plugin).
namespace exit_code {
inline constexpr int done = 0, failed = 1, user = 2, incomplete = 3, diverged = 4, interrupted = 130;
}

using Arguments = std::vector<std::string>;  // after the command's name

int run(const Arguments& arguments);
int trials(const Arguments& arguments);
int sweep(const Arguments& arguments);
int table(const Arguments& arguments);
int describe(const Arguments& arguments);
int plugins(const Arguments& arguments);
int check(const Arguments& arguments);
int bench(const Arguments& arguments);
int schema(const Arguments& arguments);
int status(const Arguments& arguments);
int merge(const Arguments& arguments);
int logs(const Arguments& arguments);
int verify(const Arguments& arguments);
int export_weights(const Arguments& arguments);
int plot(const Arguments& arguments);
int report(const Arguments& arguments);
int serve(const Arguments& arguments);
int theory(const Arguments& arguments);
int doctor(const Arguments& arguments);

}  // namespace phasor::cli
