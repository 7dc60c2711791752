#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <unistd.h>

#include "core/base/error.h"
#include "core/plugin/loader.h"
#include "core/plugin/registry.h"

namespace phasor::sweeps {

/// A folder of one test, with files of text.
class Scratch : public testing::Test {
 protected:
  Scratch() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "phasor_" + test->name() + "." + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  static const Registry& plugins() {
    static const std::unique_ptr<Registry> registry = [] {
      auto made = std::make_unique<Registry>();
      load_plugins(*made, default_plugin_folder());
      return made;
    }();
    return *registry;
  }

 private:
  std::string folder_;
};

/// The text of the UserError that `action` throws, or "".
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

inline const char* const base_text = R"({
  "seed": 0,
  "task": {"name": "state_tracking", "group": "S2", "valid": {"length": 8}, "train": {"length": 8},
           "test": {"lengths": [8, 16]}},
  "model": {"dim": 16, "layers": 1, "backbone": {"name": "gla", "heads": 2, "expand_k": 1.0},
            "encoding": {"name": "selective_rope", "projection": {"rank": 4}}},
  "optimizer": {"lr": 0.01},
  "train": {"steps": 10, "batch": 16}
}
)";

/// A sweep file around its axes; `more` ends with a comma.
inline std::string sweep_text(const std::string& axes, const std::string& more = "",
                              const std::string& report = "[8, 16]") {
  return R"({
  "name": "small", "base": "base.json", )" +
         more + R"(
  "axes": [)" +
         axes + R"(],
  "table": {
    "select": {"split": "valid", "metric": "sequence_accuracy", "slice": 8},
    "report": [{"split": "test", "metric": "sequence_accuracy", "slices": )" +
         report + R"(}]
  }
}
)";
}

}  // namespace phasor::sweeps
