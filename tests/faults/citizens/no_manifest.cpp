// A shared library that is no plugin.
#include <cstdlib>

namespace {
[[maybe_unused]] const bool initialised = (std::abort(), true);
}

extern "C" __attribute__((visibility("default"))) int answer() { return 42; }
