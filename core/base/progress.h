#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace phasor {

/// What a progress line shows.
struct ProgressState {
  std::string title;
  std::int64_t done = 0;
  std::int64_t total = 0;  // 0 = unknown: no bar, no ETA
  double elapsed_seconds = 0.0;
  std::int64_t done_at_start = 0;  // found finished, not worked for: left out of rate and ETA
  std::string extra;               // "2 running   1 diverged"
};

/// `select   [=============>      ]  47/72   2 running   38/min   ETA 2:20`, at most `width` characters.
std::string progress_line(const ProgressState& state, std::size_t width = 1000);

/// "0:07", "12:40", "3:05:00", "2 d 3 h".
std::string duration_text(double seconds);

/// The progress of anything that may take longer than two seconds; shorter work prints nothing. On a terminal one live
/// line, redrawn at most ten times a second; elsewhere (a log file) a plain line at most every ten seconds. Safe to use
/// from several threads.
class Progress {
 public:
  using Clock = std::function<double()>;  // seconds, monotonic
  using Sink = std::function<void(std::string_view)>;
  /// Where lines go; the default is standard error.
  struct Output {
    Sink write;
    bool terminal = false;
    std::function<std::size_t()> width;  // columns of the terminal
    Clock clock;
    static Output standard_error();
  };

  explicit Progress(std::string title, std::int64_t total = 0, std::int64_t done_at_start = 0,
                    Output output = Output::standard_error());
  ~Progress();  // clears the live line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done, std::string extra = {});
  void set_total(std::int64_t total);
  /// A line of its own (a diverged trial) that stays above the live line.
  void note(std::string_view line);
  /// Ends the live line; `summary` is printed when it is not empty, even after less than two seconds.
  void finish(std::string_view summary = {});

 private:
  void show(double now);
  void clear();

  mutable std::mutex mutex_;
  Output output_;
  ProgressState state_;
  double started_;
  double shown_ = -1e300;  // when a line was last printed
  bool live_ = false;      // a live line stands on the terminal
  bool finished_ = false;
};

}  // namespace phasor
