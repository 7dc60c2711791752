#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "core/nn/encoding.h"
#include "core/spec/schema.h"
#include "sweeps/expand.h"
#include "sweeps/report.h"
#include "tests/sweeps/scratch.h"

namespace phasor::sweeps {
namespace {

/// An encoding before and after its option "ratio" became "turn".
struct Before final : Encoding {
  struct Options {
    double ratio = 2.0;
    void fields(FieldList& f) { f.number("ratio", ratio, "of the planes"); }
  };
  Before(const Options&, const MixerShape&, const ParameterScope&) {}
  static std::optional<std::string> refuses(const Options&, const MixerShape&) { return std::nullopt; }
  Hook hook() const override { return Hook::none; }
};
struct After final : Encoding {
  struct Options {
    double turn = 2.0;
    void fields(FieldList& f) {
      f.number("turn", turn, "of the planes");
      f.formerly("turn", "ratio");
    }
  };
  After(const Options&, const MixerShape&, const ParameterScope&) {}
  static std::optional<std::string> refuses(const Options&, const MixerShape&) { return std::nullopt; }
  Hook hook() const override { return Hook::none; }
};

class Identity : public Scratch {
 protected:
  /// The trial of an experiment's file with these --set.
  static Trial trial_of(const std::string& file, const std::vector<std::string>& settings = {}, const Registry& registry = plugins()) {
    const auto complete = [&](Document& read) { ExperimentSpec::complete(read, registry); };
    Document document = Document::read_extended(file, complete);
    complete(document);
    std::vector<std::string> mistakes;
    apply_settings(document, settings, mistakes);
    ExperimentSpec spec(registry);
    spec.read(document);
    require_none({&document}, mistakes);
    return make_trial(spec);
  }
  static std::string shipped(const std::string& name) { return std::string(PHASOR_SOURCE) + "/experiments/" + name; }
  Expansion expand(const std::string& values) const {
    write("base.json", base_text);
    const std::string axis = R"({"name": "lr", "role": "select", "path": "optimizer.lr", "values": [)" + values + "]}";
    return load_sweep(write("sweep.json", sweep_text(axis)), {}, plugins()).expansion;
  }
};

// A trial's id is the name of its file: whoever has results on a disk has these ids. When a change of the program changes
// one, all results of such experiments are lost to `sweep` and `table`, which take them for trials of another sweep. An
// option that is new belongs into `identity` only where it asks for something (see train.storage there); one that is renamed
// says so (FieldList::formerly). These numbers are never edited to fit.
TEST_F(Identity, IdsAreFrozen) {
  const std::map<std::string, std::string> frozen = {
      {"state_tracking/small.json", "11bb923c-e20b-51a2-b521-2d4f774b95ba"},
      {"state_tracking/s2_gla.json", "8b858c91-0bc9-5d4e-8119-077895a9fca3"},
      {"mqar/small.json", "69a39ef1-aecd-5629-adc7-b1eab629e7d0"},
      {"mqar/figure6.json", "fde382f1-05b6-5769-acf4-28d0e5a4ded2"},
      {"copying/small.json", "f684f170-bfbd-587f-8166-db5e5ede0c15"},
      {"mad/small_recall.json", "a23b5738-3a2b-5ae8-bb31-d47ab311d2cc"},
      {"mad/compression.json", "5533f0ac-e7df-555d-93a9-0f6de346c05d"},
  };
  for (const auto& [name, id] : frozen) EXPECT_EQ(trial_of(shipped(name)).id, id) << name;
}

TEST_F(Identity, ARenamedOptionKeepsTheIdsOfOldTrials) {
  Registry before, after;
  for (Registry* registry : {&before, &after}) load_plugins(*registry, default_plugin_folder());
  before.encoding<Before>("spin", 1, "for this test");
  after.encoding<After>("spin", 1, "for this test");
  std::string text = base_text;
  const std::string encoding = R"({"name": "selective_rope", "projection": {"rank": 4}})";
  const auto file_with = [&](const std::string& name, const std::string& options) {
    std::string changed = text;
    return write(name, changed.replace(changed.find(encoding), encoding.size(), R"({"name": "spin")" + options + "}"));
  };
  const Trial old = trial_of(file_with("old.json", R"(, "ratio": 3)"), {}, before);
  const Trial now = trial_of(file_with("new.json", R"(, "turn": 3)"), {}, after);
  EXPECT_EQ(now.id, old.id);
  EXPECT_EQ(*now.spec.at_path("model.encoding.turn"), Json(3));
  EXPECT_EQ(now.spec.at_path("model.encoding.ratio"), nullptr);
  EXPECT_EQ(trial_of(path("old.json"), {}, after).id, old.id);  // the old file
  EXPECT_EQ(trial_of(write("stored.json", old.spec.pretty()), {}, after).id, old.id);  // what a folder holds
  EXPECT_EQ(trial_of(path("old.json"), {"model.encoding.turn=4"}, after).id, trial_of(path("old.json"), {"model.encoding.ratio=4"}, before).id);
  EXPECT_NE(error_of([&] { trial_of(path("new.json"), {"model.encoding.ratio=4"}, after); }).find("is the former name of \"turn\""),
            std::string::npos);
  const std::string plain = file_with("default.json", "");
  EXPECT_EQ(trial_of(plain, {}, after).id, trial_of(plain, {}, before).id);
  // A sweep over the new name finds what the old one trained.
  const auto ids = [&](const std::string& name, const Registry& registry) {
    const std::string axis = R"({"name": "t", "role": "select", "path": "model.encoding.)" + name + R"(", "values": [1, 2]})";
    std::string sweep = sweep_text(axis);
    const std::string base = "base.json";
    sweep.replace(sweep.find(base), base.size(), name == "turn" ? "new.json" : "old.json");
    const Expansion made = load_sweep(write("sweep.json", sweep), {}, registry).expansion;
    return std::pair(made.trials[0].id, made.trials[1].id);
  };
  EXPECT_EQ(ids("turn", after), ids("ratio", before));
}

TEST_F(Identity, EqualDoublesAreOneTrialAndNeighboursTwo) {
  const double value = 0.003;
  const std::string next = shortest(std::nextafter(value, 1.0)), before = shortest(std::nextafter(value, 0.0));
  const Expansion made = expand("0.003, " + next + ", " + before);
  ASSERT_EQ(made.trials.size(), 3u);
  EXPECT_EQ(made.manifest.axes[0].labels, (std::vector<std::string>{"0.003", next, before}));
  EXPECT_NE(error_of([&] { expand("0.003, 3e-3"); }).find("found the value 0.003 twice on this axis"), std::string::npos);
  // More digits than a double holds are the double.
  EXPECT_EQ(expand("0.0030000000000000000001").trials[0].id, made.trials[0].id);
}

TEST_F(Identity, NamesOfValuesReadBackToTheSameBits) {
  std::string list;
  std::vector<double> values;
  for (double x : {0.1, 1.0 / 3.0, 2.5e-300, 1e22, 123456789.125, 5e-324, 0.003, 1e-5, 4503599627370497.5}) {
    values.push_back(x);
    list += (list.empty() ? "" : ", ") + shortest(x);
  }
  const Expansion made = expand(list);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string& label = made.manifest.axes[0].labels[i];
    double back = 0.0;
    std::from_chars(label.data(), label.data() + label.size(), back);
    EXPECT_EQ(back, values[i]) << label;
    EXPECT_EQ(made.trials[i].spec.at_path("optimizer.lr")->as_number(), values[i]);
    EXPECT_EQ(parse_json(made.trials[i].spec.canonical(), "spec").at_path("optimizer.lr")->as_number(), values[i]);
  }
}

TEST_F(Identity, SeedsLoseNoDigit) {
  const std::string file = write("base.json", base_text);
  EXPECT_NE(trial_of(file, {"seed=9007199254740993"}).id, trial_of(file, {"seed=9007199254740992"}).id);
  EXPECT_EQ(trial_of(file, {"seed=-0"}).id, trial_of(file).id);
  EXPECT_EQ(trial_of(file, {"seed=3.0"}).id, trial_of(file, {"seed=3"}).id);
}

/// Every path that an experiment has can be set, with what stands there, and then nothing changes.
TEST_F(Identity, EveryPathCanBeSet) {
  int paths = 0;
  for (const char* name : {"state_tracking/small.json", "mqar/small.json", "copying/small.json", "mad/small_recall.json"}) {
    const Trial trial = trial_of(shipped(name));
    const ExperimentSpec fields(plugins());
    for (const PathSchema& at : path_schemas(fields.fields())) {
      const Json* value = trial.spec.at_path(at.path);
      if (value == nullptr) continue;  // of another plugin
      ++paths;
      EXPECT_EQ(trial_of(shipped(name), {at.path + "=" + value->canonical()}).id, trial.id) << name << " " << at.path;
      if (value->is_string() && !value->as_string().empty() && at.path != "note") {  // as people type it
        EXPECT_EQ(trial_of(shipped(name), {at.path + "=" + value->as_string()}).id, trial.id) << name << " " << at.path;
      }
      // And what is not of its type is told with its path.
      const std::string wrong = at.path + (value->is_object() ? "=3" : "={\"no\": 1}");
      const std::string report = error_of([&] { trial_of(shipped(name), {wrong}); });
      EXPECT_NE(report.find("--set: " + at.path + ": found"), std::string::npos) << wrong << "\n" << report;
    }
  }
  EXPECT_GT(paths, 150);
}

}  // namespace
}  // namespace phasor::sweeps
