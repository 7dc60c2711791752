#include "core/base/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace phasor {

namespace {

constexpr double quiet_seconds = 2.0, live_interval = 0.1, plain_interval = 10.0;
constexpr std::size_t bar_width = 20;

std::string bar(double part) {
  const auto filled = static_cast<std::size_t>(std::floor(std::clamp(part, 0.0, 1.0) * static_cast<double>(bar_width)));
  std::string text(bar_width, ' ');
  std::fill_n(text.begin(), filled, '=');
  if (filled < bar_width && part > 0.0) text[filled] = '>';
  return '[' + text + ']';
}

/// Three digits at most, per second, minute or hour.
std::string rate_text(double per_second) {
  const auto number = [](double x) { return x < 9.95 ? fmt::format("{:.1f}", x) : fmt::format("{:.0f}", x); };
  if (per_second >= 1.0) return number(per_second) + "/s";
  if (per_second >= 1.0 / 60.0) return number(per_second * 60.0) + "/min";
  return number(per_second * 3600.0) + "/h";
}

/// Not in the middle of a character.
std::string cut(std::string text, std::size_t width) {
  std::size_t columns = 0, at = 0;
  for (; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (begins && columns++ == width) break;
  }
  text.resize(at);
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0.0) || seconds > 1e9) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours >= 48) return fmt::format("{} d {} h", hours / 24, hours % 24);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string progress_line(const ProgressState& state, std::size_t width) {
  std::string line = state.title;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) line += (line.empty() ? "" : "   ") + part;
  };
  if (state.total > 0) {
    const double part = static_cast<double>(state.done) / static_cast<double>(state.total);
    const std::string total = std::to_string(state.total);
    add(bar(part) + fmt::format("  {:>{}}/{}", state.done, total.size(), total));
  } else {
    add(std::to_string(state.done));
  }
  add(state.extra);
  const auto worked = static_cast<double>(state.done - state.done_at_start);
  if (worked > 0.0 && state.elapsed_seconds > 0.0) {
    const double rate = worked / state.elapsed_seconds;
    add(rate_text(rate));
    if (state.total > state.done) add("ETA " + duration_text(static_cast<double>(state.total - state.done) / rate));
  }
  return cut(std::move(line), width);
}

Progress::Output Progress::Output::standard_error() {
  Output output;
  output.write = [](std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
      if (count <= 0) return;  // nobody reads; progress is not worth an error
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  };
  const char* kind = std::getenv("TERM");
  output.terminal = ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
  output.width = [] {
    winsize size{};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? std::size_t{size.ws_col} : std::size_t{80};
  };
  output.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  return output;
}

Progress::Progress(std::string title, std::int64_t total, std::int64_t done_at_start, Output output)
    : output_(std::move(output)), started_(output_.clock()) {
  state_.title = std::move(title);
  state_.total = total;
  state_.done = state_.done_at_start = done_at_start;
}

Progress::~Progress() { clear(); }

void Progress::update(std::int64_t done, std::string extra) {
  const std::lock_guard lock(mutex_);
  state_.done = done;
  state_.extra = std::move(extra);
  const double now = output_.clock();
  const double interval = output_.terminal ? live_interval : plain_interval;
  if (finished_ || now - started_ < quiet_seconds || now - shown_ < interval) return;
  show(now);
}

void Progress::set_total(std::int64_t total) {
  const std::lock_guard lock(mutex_);
  state_.total = total;
}

void Progress::note(std::string_view line) {
  const std::lock_guard lock(mutex_);
  const bool was_live = live_;
  clear();
  output_.write(std::string(line) + '\n');
  if (was_live) show(output_.clock());
}

void Progress::finish(std::string_view summary) {
  const std::lock_guard lock(mutex_);
  clear();
  if (!finished_ && !summary.empty()) output_.write(std::string(summary) + '\n');
  finished_ = true;
}

void Progress::show(double now) {
  shown_ = now;
  state_.elapsed_seconds = now - started_;
  if (!output_.terminal) {
    output_.write(progress_line(state_) + '\n');
    return;
  }
  // One column stays free: a full line would wrap, and the next redraw would start on the wrong one.
  const std::size_t width = std::max<std::size_t>(output_.width(), 2) - 1;
  output_.write("\r\x1b[2K" + progress_line(state_, width));
  live_ = true;
}

void Progress::clear() {
  if (live_) output_.write("\r\x1b[2K");
  live_ = false;
}

}  // namespace phasor
