// Static and thread-local objects whose destructors run when the process or a thread ends, after every owner is gone.
#include <map>
#include <string>

#include "tests/faults/citizens/citizen.h"

namespace {

std::map<std::string, int> names = {{"one", 1}, {"two", 2}};
thread_local std::map<std::string, int> seen;

class Counting final : public phasor::Encoding {
 public:
  struct Options {
    void fields(phasor::FieldList&) {}
  };
  static std::optional<std::string> refuses(const Options&, const phasor::MixerShape&) { return std::nullopt; }
  Counting(const Options&, const phasor::MixerShape&, const phasor::ParameterScope&) {}
  ~Counting() override { names["gone"] += seen["asked"]; }
  phasor::Hook hook() const override {
    ++seen["asked"];
    return phasor::Hook::none;
  }
};

}  // namespace

PHASOR_PLUGIN("destructors", "1.0", [](phasor::Registry& registry) {
  registry.encoding<Counting>("counting", static_cast<int>(names.size()), "keeps things for the end");
})
