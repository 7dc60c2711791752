#include "sweeps/expand.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/sweeps/scratch.h"

namespace phasor::sweeps {
namespace {

const std::string variants = R"({"name": "variant", "role": "row", "points": [
      {"label": "NoPE", "set": {"model.encoding": {"name": "nope"}}},
      {"label": "RoPE", "set": {"model.encoding": {"name": "rope"}}},
      {"label": "Selective", "set": {}},
      {"label": "Gate", "set": {"model.encoding.gate.kind": "standard"}}]})";
const std::string lrs = R"({"name": "lr", "role": "select", "path": "optimizer.lr", "values": [0.001, 0.01]})";
const std::string seeds = R"({"name": "seed", "role": "replicate", "path": "seed", "values": [0, 1, 2]})";

class Expand : public Scratch {
 protected:
  Expansion expand(const std::string& sweep, const std::vector<std::string>& settings = {}) const {
    write("base.json", base_);
    return load_sweep(write("sweep.json", sweep), settings, plugins()).expansion;
  }
  std::string mistakes(const std::string& sweep, const std::vector<std::string>& settings = {}) const {
    return error_of([&] { expand(sweep, settings); });
  }
  std::string base_ = base_text;
};

const Json& value(const Expansion& expansion, std::size_t cell, const char* path) {
  const std::string& id = expansion.manifest.trials[cell].id;
  const auto trial =
      std::find_if(expansion.trials.begin(), expansion.trials.end(), [&](const Trial& t) { return t.id == id; });
  return *trial->spec.at_path(path);
}

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "expected: " << words << "\nfound: " << text;
}

TEST_F(Expand, Product) {
  const Expansion made = expand(sweep_text(variants + "," + lrs + "," + seeds));
  EXPECT_EQ(made.manifest.trials.size(), 24u);
  EXPECT_EQ(made.trials.size(), 24u);
  EXPECT_EQ(made.manifest.trials[1].at, (std::vector<std::int64_t>{0, 0, 1}));  // the last axis moves fastest
  EXPECT_EQ(made.manifest.varied,
            (std::vector<std::string>{"model.encoding", "model.encoding.gate.kind", "optimizer.lr", "seed"}));
  EXPECT_EQ(made.manifest.axes[1].labels, (std::vector<std::string>{"0.001", "0.01"}));
  EXPECT_EQ(cell_name(made.manifest, made.manifest.trials[23]), "Gate / lr 0.01 / seed 2");
  EXPECT_EQ(value(made, 23, "optimizer.lr"), Json(0.01));
  EXPECT_EQ(value(made, 23, "seed"), Json(2));
}

TEST_F(Expand, PatchesKeepWhatTheyDoNotName) {
  const Expansion made = expand(sweep_text(variants));
  EXPECT_EQ(value(made, 3, "model.encoding.gate.kind"), Json("standard"));
  EXPECT_EQ(value(made, 3, "model.encoding.projection.rank"), Json(4));          // from the base
  EXPECT_EQ(made.trials[1].spec.at_path("model.encoding.projection"), nullptr);  // another plugin, its own defaults
  EXPECT_LT(made.manifest.trials[0].parameters, made.manifest.trials[2].parameters);
  EXPECT_LT(made.manifest.trials[2].parameters, made.manifest.trials[3].parameters);
}

TEST_F(Expand, ANameLeftToItsDefaultKeepsItsSettings) {
  base_.replace(base_.find("{\"lr\": 0.01}"), 12,
                R"({"lr": 0.01, "clip": 0.5, "schedule": {"name": "cosine", "floor": 0.1}})");
  const Expansion made = expand(sweep_text(
      R"({"name": "o", "role": "row", "points": [{"label": "same", "set": {"optimizer": {"name": "adamw", "lr": 0.02}}},
          {"label": "floor", "set": {"optimizer.schedule.floor": 0.2}}]})"));
  EXPECT_EQ(value(made, 0, "optimizer.clip"), Json(0.5));
  EXPECT_EQ(value(made, 0, "optimizer.schedule.floor"), Json(0.1));
  EXPECT_EQ(value(made, 1, "optimizer.schedule.floor"), Json(0.2));
}

TEST_F(Expand, WhatTheShapesDecideIsDecidedAfterThePatches) {
  const Expansion made =
      expand(sweep_text(R"({"name": "batch", "role": "row", "path": "train.batch", "values": [2, 64]})"));
  EXPECT_EQ(value(made, 0, "train.lanes"), Json(2));
  EXPECT_EQ(value(made, 1, "train.lanes"), Json(4));
  EXPECT_EQ(value(made, 1, "train.micro_batch"), Json(16));
}

TEST_F(Expand, IdsComeFromValuesAlone) {
  const Expansion plain = expand(sweep_text(lrs));
  const Expansion spelled =
      expand(sweep_text(R"({"values": [1.0E-3, 1e-2], "path": "optimizer.lr", "role": "select", "name": "rate"})"));
  EXPECT_EQ(plain.trials[0].id, spelled.trials[0].id);
  EXPECT_EQ(plain.trials[1].id, spelled.trials[1].id);
  base_ = R"({"train": {"batch": 16.0, "steps": 1e1}, "run": {"threads": 3, "log_every": 1}, "note": "another order",
    "optimizer": {"lr": 1e-2, "name": "adamw"}, "model": {"encoding": {"projection": {"rank": 4}, "name": "selective_rope"},
    "backbone": {"expand_k": 1, "heads": 2, "name": "gla"}, "layers": 1, "dim": 16},
    "task": {"test": {"lengths": [8, 16]}, "train": {"length": 8}, "valid": {"length": 8}, "group": "S2",
    "name": "state_tracking"}, "seed": 0})";
  EXPECT_EQ(plain.trials[1].id, expand(sweep_text(lrs)).trials[1].id);
}

TEST_F(Expand, EqualCellsAreOneTrial) {
  const Expansion made = expand(sweep_text(R"({"name": "v", "role": "row", "points": [
      {"label": "default", "set": {}}, {"label": "written out", "set": {"model.encoding.bias": false}}]},)" +
                                           seeds));
  EXPECT_EQ(made.manifest.trials.size(), 6u);
  EXPECT_EQ(made.trials.size(), 3u);
  EXPECT_EQ(made.repeated, 3);
  EXPECT_EQ(made.manifest.trials[0].id, made.manifest.trials[3].id);
}

TEST_F(Expand, Exclusions) {
  const Expansion made = expand(sweep_text(variants + "," + lrs, R"("exclude": [
      {"variant": "RoPE", "lr": 0.01, "reason": "unstable"}, {"variant": "NoPE"}],)"));
  EXPECT_EQ(made.excluded, 3);
  EXPECT_EQ(made.trials.size(), 5u);
  EXPECT_EQ(made.manifest.trials[3].excluded, "unstable");
  EXPECT_EQ(made.manifest.trials[3].id, "");
  EXPECT_FALSE(made.manifest.trials[0].excluded.empty());
  expect_words(mistakes(sweep_text(lrs, R"("exclude": [{"lr": 0.01}, {"lr": 0.001}],)")),
               "exclude: takes out every cell");
}

TEST_F(Expand, PairsThatDoNotFitAreListedUnlessExcluded) {
  const std::string heads = R"({"name": "heads", "role": "column", "path": "model.backbone.heads", "values": [2, 16]})";
  const std::string text = mistakes(sweep_text(variants + "," + heads + "," + seeds));
  for (const char* words : {R"({"variant": "RoPE", "heads": "16"})", R"({"variant": "Selective", "heads": "16"})",
                            R"({"variant": "Gate", "heads": "16"})", "axes[0].points[1]: does not fit"}) {
    expect_words(text, words);
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;  // three lines
  const Expansion made = expand(sweep_text(variants + "," + heads, R"("exclude": [
      {"variant": "RoPE", "heads": 16}, {"variant": "Selective", "heads": 16}, {"variant": "Gate", "heads": "16"}],)"));
  EXPECT_EQ(made.trials.size(), 5u);
}

TEST_F(Expand, APointThatIsWrongByItselfIsToldAtItsPlace) {
  expect_words(mistakes(sweep_text("\n" + lrs + R"(,
{"name": "v", "role": "row", "points": [{"label": "a", "set": {}},
 {"label": "b", "set": {"model.encoding": {"name": "selective_rope", "gate": {"kind": "standrd"}}}}]})")),
               "sweep.json:6:87: axes[1].points[1].set.model.encoding.gate.kind: found \"standrd\"");
  expect_words(
      mistakes(sweep_text(R"({"name": "heads", "role": "column", "path": "model.backbone.heads", "values": [2, 3]},)" +
                          variants)),
      "axes[0].values[1]");
}

TEST_F(Expand, ASweptPathMustExist) {
  const std::string text =
      mistakes(sweep_text(R"({"name": "lr", "role": "select", "path": "optimizer.lrr", "values": [0.1, 0.2, 0.3]})"));
  expect_words(text, "axes[0].path: optimizer.lrr: unknown key \"lrr\", did you mean \"lr\"?");
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;  // once, not for every value
  expect_words(
      mistakes(sweep_text(R"({"name": "f", "role": "row", "path": "optimizer.schedul.floor", "values": [0.1]})")),
      "axes[0].path: optimizer.schedul.floor: unknown key \"schedul\"");
  expect_words(
      mistakes(sweep_text(R"({"name": "v", "role": "row", "points": [{"label": "a", "set": {"model.encodng": {}}}]})")),
      "axes[0].points[0].set.model.encodng: unknown key");
}

TEST_F(Expand, TypesOfSweptValues) {
  expect_words(
      mistakes(sweep_text(R"({"name": "lr", "role": "select", "path": "optimizer.lr", "values": [0.1, "1e-3"]})")),
      "axes[0].values[1]: found \"1e-3\" (text), expected a number");
  expect_words(mistakes(sweep_text(R"({"name": "s", "role": "row", "path": "train.steps", "values": [3.5]})")),
               "axes[0].values[0]: found 3.5");
  expect_words(mistakes(sweep_text(R"({"name": "s", "role": "row", "path": "model.tie_head", "values": ["true"]})")),
               "true");
}

TEST_F(Expand, MistakesOfBothFilesAndOfTheCommandLineComeAtOnce) {
  base_.replace(base_.find("\"steps\""), 7, "\"stepz\"");
  const std::string text =
      mistakes(sweep_text(R"({"name": "lr", "role": "sel", "path": "optimizer.lr", "values": ["x"]})"),
               {"model.dim=wide", "nonsense"});
  for (const char* words : {"base.json:8:13: train.stepz", "axes[0].role", "axes[0].values[0]",
                            "--set: model.dim: found \"wide\"", "--set nonsense: found no \"=\""}) {
    expect_words(text, words);
  }
}

TEST_F(Expand, TheBaseMustBeThere) {
  const std::string file = write("sweep.json", sweep_text(lrs));
  expect_words(error_of([&] { load_sweep(file, {}, plugins()); }), "base.json: cannot be read");
}

TEST_F(Expand, SettingsChangeTheBase) {
  EXPECT_EQ(value(expand(sweep_text(lrs), {"train.steps=3"}), 0, "train.steps"), Json(3));
  expect_words(mistakes(sweep_text(lrs), {"optimizer.lr=1"}),
               "--set optimizer.lr=1: the axis \"lr\" sets optimizer.lr in every cell");
}

TEST_F(Expand, SlicesOfTheTableMustBeMeasured) {
  expect_words(mistakes(sweep_text(lrs, "", "[8, 32]")),
               "table.report[0].slices[1]: found 32, expected a length that test has in every cell: 8, 16");
  expect_words(mistakes(sweep_text(R"({"name": "l", "role": "row", "path": "task.valid.length", "values": [8, 9]})")),
               "table.select.slice: found 8, expected a length that valid has in every cell: there is none");
}

TEST_F(Expand, AllSlicesIsForSplitsOfOneLength) {
  const auto text = [](const std::string& slices, const std::string& select) {
    std::string sweep = sweep_text(R"({"name": "l", "role": "row", "path": "task.valid.length", "values": [8, 9]})", "", slices);
    const std::string found = R"("slice": 8)";
    return sweep.replace(sweep.find(found), found.size(), R"("slice": )" + select);
  };
  EXPECT_EQ(expand(text("[8]", R"("all")")).trials.size(), 2u);
  expect_words(mistakes(text(R"(["all"])", R"("all")")),
               "table.report[0].slices[0]: found \"all\", but test has several lengths in some cell; expected one of them");
  expect_words(mistakes(text("[8]", R"("each")")), "table.select.slice: found \"each\", expected a length of at least 1, or \"all\"");
}

TEST_F(Expand, FreshTrialsJoinWhenTheyAreChosen) {
  const std::string confirm = R"("confirm": {"seed": [100, 101]}, "exclude": [{"variant": "Gate"}, {"variant": "RoPE", "lr": 0.01}],)";
  Expansion made = expand(sweep_text(variants + "," + lrs + "," + seeds, confirm));
  EXPECT_EQ(made.trials.size(), 15u);
  EXPECT_EQ(made.manifest.trials.size(), 24u);  // with what is excluded, without what is fresh
  EXPECT_EQ(made.manifest.awaiting, 6);         // one rate for each of three variants, on two seeds
  EXPECT_EQ(made.confirmed_cells, 3);
  EXPECT_EQ(made.fresh.size(), 10u);
  EXPECT_EQ(made.manifest.axes[2].fresh, 2);
  EXPECT_EQ(made.manifest.axes[2].labels, (std::vector<std::string>{"0", "1", "2", "100", "101"}));
  sweeps::confirm(made, {{0, 1, -1}, {2, 0, -1}});
  EXPECT_EQ(made.manifest.awaiting, 0);
  ASSERT_EQ(made.trials.size(), 19u);
  ASSERT_EQ(made.manifest.trials.size(), 28u);
  EXPECT_EQ(cell_name(made.manifest, made.manifest.trials[24]), "NoPE / lr 0.01 / seed 100");
  EXPECT_EQ(value(made, 24, "seed"), Json(100));
  EXPECT_EQ(value(made, 24, "optimizer.lr"), Json(0.01));
  EXPECT_EQ(cell_name(made.manifest, made.manifest.trials[made.first_cell[18]]), "Selective / lr 0.001 / seed 101");
}

TEST_F(Expand, MistakesOfFreshValuesAreTold) {
  expect_words(mistakes(sweep_text(lrs + "," + seeds, R"("confirm": {"seed": [7, "8", -1]},)")), "confirm.seed[1]: found \"8\" (text)");
  expect_words(mistakes(sweep_text(lrs + "," + seeds, R"("confirm": {"seed": [7, "8", -1]},)")), "confirm.seed[2]: found -1");
}

TEST_F(Expand, TheLibraryOfSweepsIsRight) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(PHASOR_SOURCE) + "/sweeps")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const Expansion made = load_sweep(entry.path().string(), {}, plugins()).expansion;  // throws for any mistake
    EXPECT_EQ(made.manifest.name, entry.path().stem().string());
    EXPECT_FALSE(made.manifest.note.empty()) << entry.path();
    const auto cells = std::count_if(made.manifest.trials.begin(), made.manifest.trials.end(),
                                     [](const results::ManifestTrial& cell) { return cell.excluded.empty(); });
    EXPECT_EQ(static_cast<std::ptrdiff_t>(made.trials.size()), cells) << entry.path() << ": two cells are one trial";
  }
  EXPECT_GE(files, 20);
}

}  // namespace
}  // namespace phasor::sweeps
