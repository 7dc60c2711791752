#include "sweeps/folder.h"

#include <gtest/gtest.h>

#include "results/store.h"
#include "sweeps/child.h"
#include "sweeps/runner.h"
#include "tests/sweeps/scratch.h"

namespace phasor::sweeps {
namespace {

class FolderTest : public Scratch {
 protected:
  /// An expansion of trials with these ids, and records of some of them.
  static Expansion expansion_of(const std::vector<std::string>& ids) {
    Expansion made;
    for (const std::string& id : ids) {
      made.trials.push_back({Json::object(), id});
      made.trials.back().spec["seed"] = 1;
    }
    return made;
  }
  void save(const std::string& id, results::Status status) const {
    results::TrialRecord record;
    record.id = id;
    record.spec = Json::object();
    record.status = status;
    record.summary = {{"seconds", 2.5}};
    results::save(record, path("out"));
  }
  static std::string id(char digit) { return std::string(8, digit) + "-0000-5000-8000-000000000000"; }
};

TEST_F(FolderTest, MakesTheFolder) {
  prepare_folder(path("a/b/c"));
  EXPECT_TRUE(std::filesystem::is_directory(path("a/b/c")));
  EXPECT_TRUE(std::filesystem::is_empty(path("a/b/c")));
  write("file", "x");
  const std::string message = error_of([&] { prepare_folder(path("file/sub")); });
  EXPECT_NE(message.find("file/sub: results cannot be written there"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST_F(FolderTest, KnowsWhatIsMissing) {
  prepare_folder(path("out"));
  save(id('a'), results::Status::done);
  save(id('b'), results::Status::diverged);
  save(id('c'), results::Status::oom);
  save(id('d'), results::Status::done);
  write("out/" + id('e') + ".h5", "not a record");
  const Expansion expansion = expansion_of({id('a'), id('b'), id('c'), id('e'), id('f')});
  const FolderState state = read_folder(path("out"), expansion);
  EXPECT_EQ(state.ended.size(), 3u);
  EXPECT_EQ(state.others, 1);
  ASSERT_EQ(state.damaged.size(), 1u);
  EXPECT_EQ(state.seconds, std::vector<double>{2.5});
  EXPECT_EQ(to_run(expansion, state, {}), (std::vector<std::size_t>{3, 4}));
  EXPECT_EQ(to_run(expansion, state, {.retry_failed = true}), (std::vector<std::size_t>{2, 3, 4}));
}

TEST_F(FolderTest, AFolderThatIsNotThereHoldsNothing) {
  EXPECT_TRUE(read_folder(path("nowhere"), expansion_of({id('a')})).ended.empty());
}

TEST_F(FolderTest, LastLineOfALog) {
  EXPECT_EQ(last_line(path("absent")), "");
  EXPECT_EQ(last_line(write("empty", "\n \n")), "");
  EXPECT_EQ(last_line(write("log", "first\nsecond\tpart\n\n")), "second part");
  EXPECT_EQ(last_line(write("long", std::string(10000, 'x'))).size(), 200u);
  EXPECT_EQ(to_text({true, 9}), "killed by signal 9 (Killed)");
  EXPECT_EQ(to_text({false, 3}), "exit code 3");
}

}  // namespace
}  // namespace phasor::sweeps
