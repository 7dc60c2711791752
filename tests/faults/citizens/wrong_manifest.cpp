// A manifest with one thing wrong, in a library whose static initialisers would end the process.
#include <cstdlib>

#include "tests/faults/citizens/citizen.h"

namespace {

[[maybe_unused]] const bool initialised = (std::abort(), true);

constexpr phasor::PluginManifest wrong() {
  phasor::PluginManifest manifest = phasor::make_manifest("wrong", "1.0", citizens::register_nothing);
#if defined(OTHER_API)
  manifest.fingerprint[4] = '2';  // "api=1 ..."
#elif defined(OTHER_TEXT)
  for (char& c : manifest.fingerprint) c = '\n';
#elif defined(WRONG_MAGIC)
  manifest.magic[6] = '0';
#elif defined(WRONG_SIZE)
  manifest.size += 8;
#endif
  return manifest;
}

}  // namespace

CITIZEN_MANIFEST(wrong())
