#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/spec/problems.h"
#include "tests/base/example_config.h"

namespace phasor {
namespace {

class Extended : public testing::Test {
 protected:
  Extended() {
    folder_ = testing::TempDir() + "phasor_extended." + std::to_string(::getpid());
    std::filesystem::create_directories(folder_ + "/below");
  }
  ~Extended() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  /// The report about a chain of files, without the folder.
  std::string report(const Document& document) const {
    std::string text = "none";
    try {
      document.require_none();
    } catch (const UserError& error) {
      text = error.what();
    }
    for (std::size_t at = 0; (at = text.find(folder_ + "/")) != std::string::npos;) text.erase(at, folder_.size() + 1);
    return text;
  }
  std::string folder_;
};

TEST_F(Extended, objects_merge_and_lists_are_replaced) {
  write("base.json", R"({"a": {"x": 1, "y": [1, 2, 3]}, "b": {"name": "rope", "theta": 2}, "c": {"name": "gla", "heads": 4}})");
  write("below/middle.json", R"({"extends": "../base.json", "a": {"y": [9]}, "b": {"name": "nope"}})");
  const std::string top = write("top.json", R"({"extends": "below/middle.json", "a": {"z": true}, "c": {"heads": 8}})");
  const Document document = Document::read_extended(top);
  EXPECT_EQ(document.value().canonical(), R"({"a":{"x":1,"y":[9],"z":true},"b":{"name":"nope"},"c":{"heads":8,"name":"gla"}})");
  EXPECT_EQ(report(document), "none");
  EXPECT_EQ(document.name(), top);
  EXPECT_TRUE(document.file_of("a.y").ends_with("below/middle.json") || document.file_of("a.y").ends_with("/middle.json"));
  EXPECT_TRUE(document.file_of("a.x").ends_with("/base.json"));
  EXPECT_EQ(document.file_of("c.heads"), top);
}

TEST_F(Extended, the_name_of_a_file_is_no_choice_of_a_plugin) {
  write("base.json", R"({"name": "a", "axes": [1, 2], "table": {"x": 1}})");
  const std::string top = write("top.json", R"({"extends": "base.json", "name": "b", "table": {"y": 2}})");
  EXPECT_EQ(Document::read_extended(top).value().canonical(), R"({"axes":[1,2],"name":"b","table":{"x":1,"y":2}})");
}

TEST_F(Extended, every_mistake_keeps_its_file_and_place) {
  write("base.json", "{\n  \"model\": {\"dim\": \"8\", \"heads\": 2,},\n  \"sed\": 1\n}");
  const std::string top = write("top.json", "{\n  \"extends\": \"base.json\",\n  \"model\": {\"heads\": 0},\n  \"lr\": 0.1 // why\n}");
  Document document = Document::read_extended(top);
  example::Experiment e;
  FieldList fields = example::fields_of(e);
  read_fields(fields, document.value(), "", document, fields);
  const std::string text = report(document);
  for (const char* line : {"top.json:3:22: model.heads: found 0, expected an integer at least 1", "top.json:4:3: lr: unknown key",
                           "top.json:4:13: found a comment", "base.json:2:20: model.dim: found \"8\" (text)", "base.json:3:3: sed: unknown key",
                           "base.json:2:35: model: found a comma"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_LT(text.find("top.json:4:13"), text.find("base.json:2:20"));  // the file itself comes first
}

TEST_F(Extended, what_is_broken_below_and_replaced_above_is_told_once) {
  write("base.json", "{\n  \"model\": {\"dim\": 1e999}\n}");
  Document document = Document::read_extended(write("top.json", R"({"extends": "base.json", "model": {"dim": 9}})"));
  EXPECT_FALSE(document.broken("model.dim"));
  EXPECT_EQ(report(document), "base.json:2:20: model.dim: found 1e999, expected a number that fits a double, below 1.8e308 in size");
}

TEST_F(Extended, circles_are_refused_with_their_chain) {
  write("a.json", R"({"extends": "below/b.json"})");
  write("below/b.json", R"({"extends": "c.json"})");
  write("below/c.json", R"({"extends": "./../a.json"})");
  EXPECT_EQ(report(Document::read_extended(folder_ + "/a.json")),
            "below/c.json:1:13: extends: found a circle, a.json -> below/b.json -> below/c.json -> a.json, expected a file that does "
            "not extend this one");
  const std::string self = write("self.json", R"({"extends": "self.json", "x": 1})");
  EXPECT_EQ(report(Document::read_extended(self)),
            "self.json:1:13: extends: found a circle, self.json -> self.json, expected a file that does not extend this one");
  write("tail.json", R"({"extends": "self.json"})");  // leads into a circle without being of it
  EXPECT_NE(report(Document::read_extended(folder_ + "/tail.json")).find("a circle, self.json -> self.json,"), std::string::npos);
}

TEST_F(Extended, mistakes_of_the_key_itself) {
  EXPECT_EQ(report(Document::read_extended(write("a.json", R"({"extends": 3})"))),
            "a.json:1:13: extends: found 3, expected the name of a file in double quotes");
  EXPECT_NE(report(Document::read_extended(write("b.json", R"({"extends": "gone.json"})"))).find("b.json:1:13: extends: gone.json: cannot be read"),
            std::string::npos);
}

/// A renamed option: "width" was "dimension", the object "optimizer" was "adam".
struct Renamed {
  std::int64_t width = 4;
  example::Optimizer optimizer;
  void fields(FieldList& f) {
    f.integer("width", width, "of the stream", Range::at_least(1));
    f.formerly("width", "dimension");
    f.object("optimizer", optimizer, "of the parameters");
    f.formerly("optimizer", "adam");
  }
};

TEST(Formerly, files_may_say_either_name_and_identity_keeps_the_first) {
  for (const char* text : {R"({"width": 9, "optimizer": {"lr": 0.5}})", R"({"dimension": 9, "adam": {"lr": 0.5}})"}) {
    Renamed options;
    FieldList fields;
    options.fields(fields);
    Document document = Document::parse(text, "f.json");
    read_fields(fields, document.value(), "", document, fields);
    EXPECT_NO_THROW(document.require_none());
    EXPECT_EQ(options.width, 9);
    EXPECT_EQ(options.optimizer.lr, 0.5);
    EXPECT_EQ(write_fields(fields).find("width")->as_integer(), 9);
    const Json former = write_fields(fields, Names::former);
    EXPECT_EQ(former.find("width"), nullptr);
    EXPECT_EQ(former.find("dimension")->as_integer(), 9);
    EXPECT_EQ(former.at_path("adam.lr")->as_number(), 0.5);
    EXPECT_NE(help_text(fields).find("of the stream (formerly dimension)"), std::string::npos);
  }
}

TEST(Formerly, both_names_at_once_are_a_mistake) {
  Renamed options;
  FieldList fields;
  options.fields(fields);
  Document document = Document::parse("{\"width\": 9,\n \"dimension\": 8}", "f.json");
  read_fields(fields, document.value(), "", document, fields);
  ASSERT_EQ(document.problems().size(), 1u);
  EXPECT_EQ(document.problems()[0].position.line, 2);
  EXPECT_EQ(document.problems()[0].message, "\"dimension\" is the former name of \"width\", which is given too, expected \"width\" alone");
}

TEST(Formerly, a_file_takes_the_present_names_with_its_places) {
  Renamed options;
  FieldList fields;
  options.fields(fields);
  Document document = Document::parse("{\n\"adam\": {\"lr\": \"x\"}, \"dimension\": 0}", "f.json");
  use_present_names(fields, "", document);
  EXPECT_EQ(document.value().canonical(), R"({"optimizer":{"lr":"x"},"width":0})");
  document.set("width", Json(7), "--set");  // merges with what the file calls otherwise
  read_fields(fields, document.value(), "", document, fields);
  ASSERT_EQ(document.problems().size(), 1u);
  EXPECT_EQ(document.problems()[0].path, "optimizer.lr");
  EXPECT_EQ(document.problems()[0].position.line, 2);
  EXPECT_EQ(document.problems()[0].position.column, 16);
  EXPECT_EQ(options.width, 7);
}

}  // namespace
}  // namespace phasor
