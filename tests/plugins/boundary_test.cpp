#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "core/plugin/elf_file.h"
#include "core/plugin/loader.h"
#include "tests/plugins/support.h"

namespace phasor {
namespace {

std::vector<std::string> plugin_files() {
  std::vector<std::string> files = {TEMPLATE_PLUGIN};
  for (const auto& entry : std::filesystem::directory_iterator(default_plugin_folder())) {
    if (entry.path().extension() == ".so") files.push_back(entry.path().string());
  }
  return files;
}

TEST(Boundary, EveryPluginExportsOneSymbol) {
  EXPECT_GE(plugin_files().size(), 4U);
  for (const std::string& file : plugin_files()) {
    EXPECT_EQ(ElfFile::open(file).exported(), std::vector<std::string>{"phasor_plugin_manifest"}) << file;
  }
}

TEST(Boundary, TheManifestIsReadWithoutLoading) {
  for (const std::string& file : plugin_files()) {
    const std::string head = ElfFile::open(file).object("phasor_plugin_manifest", 256);
    ASSERT_EQ(head.size(), 256U) << file;
    EXPECT_EQ(head.substr(0, 8), std::string("PHASOR1\0", 8)) << file;
    EXPECT_STREQ(head.c_str() + 12, host_fingerprint().c_str()) << file;
  }
}

TEST(Boundary, TheFingerprintNamesItsParts) {
  const std::string text = host_fingerprint();
  for (const char* part : {"api=1 ", " abi=", " std=c++2", " sanitizer=", " cuda=", " arch=", " headers="}) {
    EXPECT_NE((" " + text).find(part), std::string::npos) << part << " in " << text;
  }
}

TEST(Boundary, TheRegistryIsInOrderOfName) {
  const auto registry = test::load({test::shipped("rope"), test::shipped("nope"), TEMPLATE_PLUGIN});
  std::vector<std::string> names;
  for (const auto& encoding : registry->encodings()) names.push_back(encoding->info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"nope", "octaves", "rope"}));
  EXPECT_EQ(registry->find_encoding("alibi"), nullptr);
  EXPECT_EQ(registry->libraries().size(), 3U);
}

}  // namespace
}  // namespace phasor
