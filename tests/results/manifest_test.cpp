#include "results/manifest.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>

#include "core/base/error.h"
#include "results/files.h"
#include "tests/results/folder.h"

namespace phasor::results {
namespace {

Manifest sample() {
  Manifest manifest;
  manifest.name = "parity";
  manifest.note = "does it, \"really\"?";
  manifest.axes = {{"variant", "row", "", {"NoPE", "RoPE"}, {}},
                   {"lr", "select", "optimizer.lr", {"0.001", "0.01"}, {0.001, 0.01}}};
  manifest.trials = {{"a", {0, 0}, "", 100}, {"b", {0, 1}, "", 100}, {"", {1, 0}, "does not fit", 0}, {"d", {1, 1}, "", 7}};
  manifest.varied = {"model.encoding", "optimizer.lr"};
  manifest.table["solved_at"] = 0.95;
  return manifest;
}

TEST(Manifest, EverythingComesBack) {
  const TemporaryFolder folder;
  write_manifest(sample(), folder.path());
  const Manifest loaded = read_manifest(folder.path());
  EXPECT_EQ(loaded.name, "parity");
  EXPECT_EQ(loaded.note, sample().note);
  ASSERT_EQ(loaded.axes.size(), 2u);
  EXPECT_EQ(loaded.axes[0].labels, sample().axes[0].labels);
  EXPECT_TRUE(loaded.axes[0].values.empty());
  EXPECT_EQ(loaded.axes[1].role, "select");
  EXPECT_EQ(loaded.axes[1].path, "optimizer.lr");
  EXPECT_EQ(loaded.axes[1].values[1].as_number(), 0.01);
  ASSERT_EQ(loaded.trials.size(), 4u);
  EXPECT_EQ(loaded.trials[2].excluded, "does not fit");
  EXPECT_EQ(loaded.trials[3].id, "d");
  EXPECT_EQ(loaded.trials[3].at, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(loaded.trials[3].parameters, 7);
  EXPECT_EQ(loaded.varied, sample().varied);
  EXPECT_TRUE(loaded.table == sample().table);
}

TEST(Manifest, AConfirmationComesBackAsAFormatOfItsOwn) {
  const TemporaryFolder folder;
  Manifest manifest = sample();
  write_manifest(manifest, folder.path());
  EXPECT_EQ(parse_json(read_file(folder.path() + "/sweep.json"), "m").find("format")->as_integer(), 1);
  manifest.axes.push_back({"seed", "replicate", "seed", {"0", "7"}, {0, 7}, 1});
  manifest.trials = {{"a", {0, 0, 0}, "", 100}, {"b", {0, 0, 1}, "", 100}};
  manifest.awaiting = 5;
  write_manifest(manifest, folder.path());
  EXPECT_EQ(parse_json(read_file(folder.path() + "/sweep.json"), "m").find("format")->as_integer(), 2);
  const Manifest loaded = read_manifest(folder.path());
  EXPECT_EQ(loaded.awaiting, 5);
  EXPECT_EQ(loaded.axes[2].fresh, 1);
  EXPECT_FALSE(is_fresh(loaded.axes, loaded.trials[0].at));
  EXPECT_TRUE(is_fresh(loaded.axes, loaded.trials[1].at));
}

/// What read_manifest says after a change.
std::string refusal(const std::function<void(Manifest&)>& change) {
  const TemporaryFolder folder;
  Manifest manifest = sample();
  change(manifest);
  write_manifest(manifest, folder.path());
  try {
    read_manifest(folder.path());
  } catch (const UserError& error) {
    return std::string(error.what()).substr(folder.path().size());
  }
  return "";
}

TEST(Manifest, MistakesAreNamedByTheirPlace) {
  EXPECT_EQ(refusal([](Manifest&) {}), "");
  EXPECT_EQ(refusal([](Manifest& m) { m.axes[0].role = "rows"; }),
            "/sweep.json: axes[0].role: found \"rows\", expected row, column, select, replicate or average");
  EXPECT_EQ(refusal([](Manifest& m) { m.axes[1].values.pop_back(); }), "/sweep.json: axes[1].values: found 1 values for 2 labels");
  EXPECT_EQ(refusal([](Manifest& m) { m.trials[1].at = {0, 2}; }), "/sweep.json: trials[1].at: no point 2 on axis lr");
  EXPECT_EQ(refusal([](Manifest& m) { m.trials[1].at = {0, 0}; }), "/sweep.json: trials[1].at: two trials at one place");
  EXPECT_EQ(refusal([](Manifest& m) { m.trials[1].at = {0}; }),
            "/sweep.json: trials[1].at: found 1 places, expected one on each of the 2 axes");
  EXPECT_EQ(refusal([](Manifest& m) { m.axes[1].fresh = 2; }), "/sweep.json: axes[1].fresh: found 2, expected fewer than there are labels");
  EXPECT_EQ(refusal([](Manifest& m) { m.trials[0].id = ""; }),
            "/sweep.json: trials[0]: neither an id nor a reason why it is excluded");
}

TEST(Manifest, AbsentNewerAndBrokenFilesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_manifest(folder.path()), UserError);
  std::ofstream(folder.path() + "/sweep.json") << R"({"format": 3})";
  try {
    read_manifest(folder.path());
    FAIL() << "a newer format was read";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("format: found 3, this program reads formats 1 to 2"), std::string::npos);
  }
  write_manifest(sample(), folder.path());
  const std::string whole = read_file(folder.path() + "/sweep.json");
  std::ofstream(folder.path() + "/sweep.json") << whole.substr(0, whole.size() / 2);
  EXPECT_THROW(read_manifest(folder.path()), UserError);
  std::ofstream(folder.path() + "/sweep.json") << "[]";
  EXPECT_THROW(read_manifest(folder.path()), UserError);
}

}  // namespace
}  // namespace phasor::results
