// An encoding that throws where and what its options say, or worse; nothing of it is wrong until then.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/faults/citizens/citizen.h"

namespace {

struct OwnType {
  int code = 7;
};

struct BoomOptions {
  std::string where = "nowhere", what = "runtime_error";
  void fields(phasor::FieldList& f) {
    f.choice("where", where, {"nowhere", "create", "forward", "backward", "destructor"}, "the phase that throws");
    f.choice("what", what, {"runtime_error", "own_type", "int", "segfault", "hang", "hog", "nap"}, "what it throws or does");
  }
  /// All that can be had; 4 GB without an end are no longer the limit that was to stop it.
  static void take_memory() {
    constexpr std::size_t piece = 64 << 20;
    std::vector<std::unique_ptr<char[]>> taken;
    for (int i = 0; i < 64; ++i) std::memset(taken.emplace_back(new char[piece]).get(), 1, piece);
  }
  void may_throw(const char* phase) const {
    if (where != phase) return;
    if (what == "own_type") throw OwnType{};
    if (what == "int") throw 42;
    if (what == "segfault") std::raise(SIGSEGV);
    if (what == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    if (what == "hog") take_memory();
    if (what == "nap") return std::this_thread::sleep_for(std::chrono::seconds(1));  // as long on every machine
    throw std::runtime_error("boom\nand more");
  }
};

class Boom final : public phasor::Encoding {
 public:
  using Options = BoomOptions;
  static std::optional<std::string> refuses(const Options&, const phasor::MixerShape&) { return std::nullopt; }
  Boom(const Options& options, const phasor::MixerShape&, const phasor::ParameterScope&) : options_(options) {
    options_.may_throw("create");
  }
  ~Boom() override {
    if (used_) options_.may_throw("destructor");
  }
  phasor::Hook hook() const override { return phasor::Hook::query_key; }
  phasor::QueryKey on_query_key(phasor::Tape& tape, phasor::QueryKey qk, const phasor::Tensor&,
                                const phasor::SequenceContext&, phasor::State*) const override {
    used_ = true;
    options_.may_throw("forward");
    if (tape.recording()) tape.record([options = &options_](phasor::Tape&) { options->may_throw("backward"); });
    return qk;
  }

 private:
  Options options_;
  mutable std::atomic<bool> used_ = false;
};

}  // namespace

PHASOR_PLUGIN("boom", "1.0", [](phasor::Registry& registry) {
  registry.encoding<Boom>("boom", 1, "throws where its options say");
})
