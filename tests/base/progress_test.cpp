#include "core/base/progress.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace phasor {
namespace {

struct Recorder {
  double now = 100.0;
  std::vector<std::string> written;
  Progress::Output output(bool terminal, std::size_t width = 80) {
    return {[this](std::string_view text) { written.emplace_back(text); }, terminal, [width] { return width; },
            [this] { return now; }};
  }
};

TEST(Progress, line) {
  ProgressState state{"select", 47, 72, 74.0, 0, "2 running   1 diverged"};
  EXPECT_EQ(progress_line(state),
            "select   [=============>      ]  47/72   2 running   1 diverged   38/min   ETA 0:39");
  state = {"data", 5, 100, 1.0, 5, ""};
  EXPECT_EQ(progress_line(state), "data   [=>                  ]    5/100");  // nothing done since the start
  state = {"data", 10, 100, 2.0, 5, ""};
  EXPECT_EQ(progress_line(state), "data   [==>                 ]   10/100   2.5/s   ETA 0:36");
  state = {"data", 100, 100, 2.0, 0, ""};
  EXPECT_EQ(progress_line(state), "data   [====================]  100/100   50/s");
  state = {"read", 12, 0, 4.0, 0, ""};
  EXPECT_EQ(progress_line(state), "read   12   3.0/s");
  state = {"slow", 1, 3, 1800.0, 0, ""};
  EXPECT_EQ(progress_line(state), "slow   [======>             ]  1/3   2.0/h   ETA 1:00:00");
  EXPECT_EQ(progress_line(state, 10), "slow   [==");
  EXPECT_EQ(progress_line({"\u00e9\u00e9", 0, 0, 0, 0, ""}, 2), "\u00e9\u00e9");
  EXPECT_EQ(progress_line({"x", 0, 4, 0, 0, ""}), "x   [                    ]  0/4");
}

TEST(Progress, durations) {
  EXPECT_EQ(duration_text(0.4), "0:00");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(760), "12:40");
  EXPECT_EQ(duration_text(11100), "3:05:00");
  EXPECT_EQ(duration_text(183600), "2 d 3 h");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(1e300), "?");
}

TEST(Progress, short_work_is_silent) {
  Recorder r;
  {
    Progress progress("x", 10, 0, r.output(true));
    r.now += 1.9;
    progress.update(5);
    progress.finish();
  }
  EXPECT_TRUE(r.written.empty());
}

TEST(Progress, a_terminal_has_one_live_line_at_most_ten_times_a_second) {
  Recorder r;
  Progress progress("x", 100, 0, r.output(true, 20));
  r.now += 2.0;
  for (int i = 0; i < 100; ++i, r.now += 0.01) progress.update(i);
  EXPECT_GE(r.written.size(), 9u);
  EXPECT_LE(r.written.size(), 11u);
  for (const std::string& text : r.written) {
    EXPECT_EQ(text.substr(0, 5), "\r\x1b[2K");
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_LE(text.size(), 5u + 19u);
  }
  r.written.clear();
  progress.note("a note");
  ASSERT_EQ(r.written.size(), 3u);
  EXPECT_EQ(r.written[0], "\r\x1b[2K");
  EXPECT_EQ(r.written[1], "a note\n");
  EXPECT_EQ(r.written[2].substr(0, 5), "\r\x1b[2K");
  r.written.clear();
  progress.finish("done");
  EXPECT_EQ(r.written, (std::vector<std::string>{"\r\x1b[2K", "done\n"}));
  progress.update(100);
  EXPECT_EQ(r.written.size(), 2u);
}

TEST(Progress, a_file_gets_plain_lines_at_most_every_ten_seconds) {
  Recorder r;
  {
    Progress progress("x", 100, 0, r.output(false));
    for (int i = 0; i < 60; ++i, r.now += 1.0) progress.update(i);
  }
  EXPECT_EQ(r.written.size(), 6u);
  for (const std::string& text : r.written) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(text.back(), '\n');
  }
}

TEST(Progress, threads) {
  Recorder r;
  Progress progress("x", 1000, 0, r.output(false));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) progress.note("line");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(r.written.size(), 1000u);
}

}  // namespace
}  // namespace phasor
