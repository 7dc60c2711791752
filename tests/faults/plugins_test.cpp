#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/plugin/elf_file.h"
#include "core/plugin/loader.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;

std::string citizen(const std::string& name) { return std::string(CITIZENS) + "/" + name + ".so"; }
std::string shipped(const std::string& name) { return default_plugin_folder() + "/" + name + ".so"; }

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder of its own, gone with the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "phasor-plugins-XXXXXX").string();
    PHASOR_CHECK(mkdtemp(name.data()) != nullptr, "a temporary folder");
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// A copy is another file to the system, so it is loaded afresh.
  std::string copy(const std::string& from, const std::string& name) const {
    fs::copy_file(from, file(name));
    return file(name);
  }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }

 private:
  std::string path_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Loads a file that must be refused and returns the reason, one line.
std::string problem_of(Registry& registry, const std::string& path) {
  const PluginFile file = load_plugin(registry, path);
  EXPECT_EQ(file.path, path);
  EXPECT_FALSE(file.problem.empty()) << path;
  EXPECT_FALSE(has(file.problem, "\n")) << file.problem;
  EXPECT_FALSE(has(file.problem, path)) << "the path is said once: " << file.problem;
  return file.problem;
}

std::string problem_of(const std::string& path) {
  Registry registry;
  const std::string problem = problem_of(registry, path);
  EXPECT_TRUE(registry.encodings().empty() && registry.tasks().empty() && registry.libraries().empty()) << path;
  return problem;
}

struct Bad {
  const char* name;
  const char* found;
  const char* expected;
  const char* advice;
};

const Bad bad_citizens[] = {
    {"other_api", "found api=2, ", "expected api=1;", "rebuild the plugin with this build's headers"},
    {"other_text", "found none, ", "expected abi=", "rebuild the plugin"},
    {"other_abi", "found abi=gcc", "cxx98, expected abi=gcc", "rebuild the plugin"},
    {"wrong_magic", "found a manifest that begins with \"PHASOR0\"", "expected \"PHASOR1\"", "rebuild the plugin"},
    {"wrong_size", "found a manifest of 288 bytes", "expected 280", "rebuild the plugin"},
    {"no_manifest", "found no symbol phasor_plugin_manifest", "expected PHASOR_PLUGIN(...)",
     "add it, or remove the file"},
    {"null_register", "found a manifest without", "expected all three", "use PHASOR_PLUGIN"},
    {"undefined_symbol", "found the undefined symbol citizens::missing_function(int)", "expected every symbol",
     "add the source or library that has it"},
    {"throws_runtime_error", "throws std::runtime_error (boom and more)", "expected it to register without",
     "nothing of it is used"},
    {"throws_own_type", "throws a value of type citizens::OwnType", "expected it to register without",
     "nothing of it is used"},
    {"throws_int", "throws a value of type int", "expected it to register without", "nothing of it is used"},
    {"odd_name", "encoding \"my rope\": found an odd name", "expected letters", "rename it"},
};

TEST(BadPlugins, EachHasOneLine) {
  for (const Bad& bad : bad_citizens) {
    const std::string problem = problem_of(citizen(bad.name));
    EXPECT_TRUE(has(problem, bad.found)) << bad.name << ": " << problem;
    EXPECT_TRUE(has(problem, bad.expected)) << bad.name << ": " << problem;
    EXPECT_TRUE(has(problem, bad.advice)) << bad.name << ": " << problem;
  }
}

TEST(BadPlugins, DoNotKeepGoodOnesFromLoading) {
  const Folder folder;
  for (const Bad& bad : bad_citizens) folder.copy(citizen(bad.name), std::string(bad.name) + ".so");
  folder.write("a_text.so", "encoding = rope\n");
  folder.copy(shipped("nope"), "nope.so");
  folder.copy(shipped("state_tracking"), "zz_last.so");
  folder.write("notes.txt", "not a plugin, and not called one");
  Registry registry;
  const std::vector<PluginFile> files = load_plugins(registry, folder.path());
  EXPECT_EQ(files.size(), std::size(bad_citizens) + 3);
  EXPECT_TRUE(std::is_sorted(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; }));
  for (const PluginFile& file : files) {
    const bool good = has(file.path, "nope.so") || has(file.path, "zz_last.so");
    EXPECT_EQ(file.problem.empty(), good) << file.path << ": " << file.problem;
  }
  EXPECT_NE(registry.find_encoding("nope"), nullptr);
  EXPECT_NE(registry.find_task("state_tracking"), nullptr);
  EXPECT_EQ(registry.encodings().size(), 1U);
  EXPECT_EQ(registry.find_encoding("nope")->info.library, folder.file("nope.so"));
}

TEST(BadPlugins, WhatTheyRegisteredIsForgotten) {
  Registry registry;
  for (const char* name : {"throws_runtime_error", "throws_own_type", "throws_int"})
    problem_of(registry, citizen(name));
  EXPECT_EQ(registry.find_encoding("half"), nullptr);
  EXPECT_TRUE(registry.libraries().empty());
}

/// What using the name says, or "" when it can be used.
std::string use(const Registry& registry, const std::string& name) {
  try {
    return registry.find_encoding(name) == nullptr ? "unknown" : "";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(BadPlugins, DuplicateNamesNameBothFiles) {
  const Folder folder;
  const std::string good = folder.copy(shipped("nope"), "nope.so");
  const std::string other = folder.copy(citizen("duplicate"), "duplicate.so");
  for (const bool reverse : {false, true}) {
    const std::string first = reverse ? other : good, second = reverse ? good : other;
    Registry registry;
    EXPECT_EQ(load_plugin(registry, first).problem, "");
    EXPECT_EQ(use(registry, "nope"), "") << "one bearer of a name is none too many";
    EXPECT_TRUE(registry.duplicates().empty());
    EXPECT_EQ(load_plugin(registry, second).problem, "");
    const std::string expected = "encoding \"nope\": found in " + first + " and in " + second +
                                 ", expected one of each name; remove one of the files or rename what it registers";
    EXPECT_EQ(use(registry, "nope"), expected);
    EXPECT_EQ(registry.duplicates(), std::vector<std::string>{expected});
    EXPECT_EQ(use(registry, "first_of_all"), "") << "what else the files bring stays usable";
    EXPECT_EQ(registry.encodings().size(), 2U);
  }

  Registry twins;
  const std::string twice = load_plugin(twins, citizen("twins")).problem;
  EXPECT_TRUE(has(twice, "encoding \"twin\": found twice in " + citizen("twins"))) << twice;
  EXPECT_EQ(twins.find_encoding("twin"), nullptr);
}

TEST(BadPlugins, ABearerThatIsForgottenIsNoRival) {
  const Folder folder;
  Registry registry;
  EXPECT_EQ(load_plugin(registry, folder.copy(citizen("half"), "half.so")).problem, "");
  problem_of(registry, citizen("throws_int"));  // registers "half" before it throws
  EXPECT_EQ(use(registry, "half"), "");
}

TEST(BadPlugins, TheSameFileTwice) {
  const Folder folder;
  const std::string good = folder.copy(shipped("nope"), "nope.so");
  fs::create_symlink(good, folder.file("soft.so"));
  fs::create_hard_link(good, folder.file("hard.so"));
  fs::create_directory(folder.file("sub"));
  Registry registry;
  EXPECT_EQ(load_plugin(registry, good).same_as, "");
  for (const std::string& again : {good, folder.file("soft.so"), folder.file("hard.so"), folder.file("sub/../nope.so")}) {
    const PluginFile file = load_plugin(registry, again);
    EXPECT_EQ(file.problem, "");
    EXPECT_EQ(file.same_as, good) << again;
  }
  EXPECT_EQ(use(registry, "nope"), "");
  EXPECT_EQ(registry.libraries(), std::vector<std::string>{good});
  const std::string copy = folder.copy(good, "copy.so");
  EXPECT_EQ(load_plugin(registry, copy).same_as, "");
  EXPECT_TRUE(has(use(registry, "nope"), "found in " + good + " and in " + copy)) << "a copy is another file";
}

// openmm PR 2587: a plugin ran the function of another one that has the same name.
TEST(BadPlugins, EachUsesItsOwnSymbolsInBothOrders) {
  for (const std::string kind : {"clash", "careless"}) {
    for (const bool reverse : {false, true}) {
      const Folder folder;
      std::vector<std::string> files = {folder.copy(citizen(kind + "_one"), "one.so"),
                                        folder.copy(citizen(kind + "_two"), "two.so")};
      if (reverse) std::swap(files[0], files[1]);
      Registry registry;
      for (const std::string& file : files) EXPECT_EQ(load_plugin(registry, file).problem, "");
      for (const std::string text : {"one", "two"}) {
        const EncodingPlugin* encoding = registry.find_encoding("clash_" + text);
        ASSERT_NE(encoding, nullptr);
        EXPECT_EQ(encoding->info.help, "1: model " + text + ", helper " + text);
        // A static variable of an inline function is one for the whole process where it is visible, whatever RTLD_LOCAL
        // says; phasor_add_plugin hides it.
        if (kind == "clash") {
          EXPECT_EQ(encoding->info.revision, 1);
        }
      }
    }
  }
}

TEST(BadPlugins, FilesThatAreNoLibraries) {
  const Folder folder;
  EXPECT_EQ(problem_of(folder.write("empty.so", "")),
            "found an empty file, expected a shared library; remove it or build it again");
  EXPECT_EQ(problem_of(folder.write("text.so", "#!/bin/sh\necho \"hello\"\n")),
            "found a file that begins with \"#!/bin/sh.echo .\", expected a shared library; remove it or build it "
            "again (ELF)");
  EXPECT_TRUE(has(problem_of(folder.write("script.so", "INPUT(-lm)\n")), "found a file that begins with"));
  fs::create_directory(folder.file("folder.so"));
  EXPECT_TRUE(has(problem_of(folder.file("folder.so")), "found something that is not a file"));
  EXPECT_TRUE(has(problem_of(folder.file("absent.so")), "cannot be opened (No such file or directory)"));
  fs::create_symlink(folder.file("nowhere"), folder.file("dangling.so"));
  EXPECT_TRUE(has(problem_of(folder.file("dangling.so")), "cannot be opened"));

  std::string library = read_file(shipped("nope"));
  library[18] = 40;  // e_machine: ARM
  EXPECT_TRUE(
      has(problem_of(folder.write("arm.so", library)), "found a library for another processor (ELF machine 40"));
  library = read_file(shipped("nope"));
  library[16] = 1;  // e_type: object file
  EXPECT_TRUE(has(problem_of(folder.write("object.so", library)), "found an ELF file of type 1"));
}

TEST(BadPlugins, CutOffAnywhere) {
  const Folder folder;
  const std::string whole = read_file(shipped("nope"));
  std::vector<std::size_t> sizes = {1, 3, 4, 5, 15, 63, 64, 65, 119, 120, 4095, 4096, whole.size() - 1};
  for (std::size_t i = 1; i < 64; ++i) sizes.push_back(whole.size() * i / 64);
  for (const std::size_t size : sizes) {
    const std::string path = folder.write("cut" + std::to_string(size) + ".so", whole.substr(0, size));
    const std::string problem = problem_of(path);
    if (size >= 4) {
      EXPECT_EQ(problem, "found " + std::to_string(size) +
                             " bytes of a longer shared library, expected all of it; copy or build it again");
    }
  }
}

TEST(BadPlugins, FlippedBytesAreNeverFollowedOutOfTheFile) {
  const std::string whole = read_file(shipped("nope"));
  const RandomStream random(1, Purpose::data);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    // The headers and tables at both ends say where everything is.
    for (std::uint64_t k = 0; k < 4; ++k) {
      const std::uint64_t near = random.below(8 * i + 2 * k, 2000);
      const std::size_t at = k % 2 == 0 ? near : bytes.size() - 1 - near;
      bytes[at] = static_cast<char>(random.below(8 * i + 2 * k + 1, 256));
    }
    try {
      const ElfFile file(bytes);
      EXPECT_LE(file.object("phasor_plugin_manifest", 256).size(), 256U);
      for (const std::string& name : file.exported()) EXPECT_LE(name.size(), bytes.size());
    } catch (const UserError&) {
    }
  }
}

TEST(BadPlugins, AFolderThatIsNotThere) {
  const Folder folder;
  Registry registry;
  const auto files = load_plugins(registry, folder.file("plugins"));
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].path, folder.file("plugins"));
  EXPECT_EQ(
      files[0].problem,
      "cannot be read (No such file or directory), expected the folder of the plugins; build them, or name another "
      "folder");
  EXPECT_TRUE(load_plugins(registry, folder.path()).empty()) << "an empty folder has no plugins and no problem";
}

TEST(BadPlugins, RelativePathsAreNotSearchedFor) {
  const Folder folder;
  folder.copy(shipped("nope"), "nope.so");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  Registry registry;
  EXPECT_EQ(load_plugin(registry, "nope.so").problem, "");
  EXPECT_TRUE(has(load_plugin(registry, "libm.so.6").problem, "cannot be opened"));
  fs::current_path(before);
}

// ros/class_loader 218: the library went before what it had made.
TEST(GoodPlugins, ObjectsOutliveTheRegistry) {
  std::unique_ptr<Task> task;
  std::unique_ptr<Encoding> encoding;
  ParameterStore store;
  {
    const Folder folder;
    Registry registry;
    ASSERT_EQ(load_plugin(registry, folder.copy(shipped("state_tracking"), "task.so")).problem, "");
    ASSERT_EQ(load_plugin(registry, folder.copy(citizen("destructors"), "destructors.so")).problem, "");
    const TaskPlugin& tasks = *registry.find_task("state_tracking");
    task = tasks.make(*tasks.options());
    const EncodingPlugin& encodings = *registry.find_encoding("counting");
    encoding = encodings.make(*encodings.options(), MixerShape{}, ParameterScope(store, "", 1.0));
  }
  EXPECT_EQ(task->label(), "S2");
  std::thread other([&] { EXPECT_EQ(encoding->hook(), Hook::none); });  // its thread-local ends with it
  other.join();
  EXPECT_EQ(encoding->hook(), Hook::none);
}

TEST(GoodPlugins, ExitIsQuiet) {
  const auto leave = [] {
    Registry registry;
    ParameterStore store;
    if (!load_plugin(registry, citizen("destructors")).problem.empty()) std::_Exit(1);
    const EncodingPlugin& encodings = *registry.find_encoding("counting");
    static std::unique_ptr<Encoding> kept;
    kept = encodings.make(*encodings.options(), MixerShape{}, ParameterScope(store, "", 1.0));
    kept->hook();
    std::exit(7);  // destroys `kept` and the statics of the plugin
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(7), "^$");
}

}  // namespace
}  // namespace phasor
