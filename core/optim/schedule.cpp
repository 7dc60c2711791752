#include "core/optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/portable_math.h"

namespace phasor {

namespace {

/// From 1 down to 0 over u = 0 .. 1 as half a cosine.
double half_cosine(double u) { return 0.5 * (1.0 + portable::sincos_turns(0.5 * u).cos); }

double descent(const std::string& shape, double u) {
  if (shape == "cosine") return half_cosine(u);
  if (shape == "one_minus_sqrt") return 1.0 - std::sqrt(u);
  return 1.0 - u;
}

}  // namespace

const std::vector<std::string>& ScheduleOptions::names() {
  static const std::vector<std::string> all = {"constant", "linear", "cosine", "cosine_annealing", "wsd"};
  return all;
}

FieldList ScheduleOptions::fields_of(const std::string& schedule) {
  name = schedule;
  FieldList f;
  if (name == "linear" || name == "cosine" || name == "wsd")
    f.number("warmup", warmup, "share of the steps with a rising rate", Range::between(0.0, 1.0));
  if (name == "cosine" || name == "wsd")
    f.number("start", start, "rate of the first update, as a share of lr", Range::between(0.0, 1.0));
  if (name == "cosine" || name == "cosine_annealing" || name == "wsd")
    f.number("floor", floor, "rate at the end, as a share of lr", Range::between(0.0, 1.0));
  if (name == "wsd") {
    f.number("decay", decay, "share of the steps in the final descent", Range::between(0.0, 1.0));
    f.choice("shape", shape, {"linear", "cosine", "one_minus_sqrt"}, "of the descent");
  }
  return f;
}

Schedule make_schedule(const ScheduleOptions& o, double peak, std::int64_t steps) {
  const auto n = static_cast<double>(steps);
  return {o.name, peak, peak * o.start, peak * o.floor, n, o.warmup * n, o.decay * n, o.shape};
}

double Schedule::rate(std::int64_t done) const {
  const auto t = static_cast<double>(done);
  if (name == "constant") return peak;
  if (name == "linear") {
    if (t < warmup) return peak * t / std::max(1.0, warmup);
    return peak * std::max(0.0, (steps - t) / std::max(1.0, steps - warmup));
  }
  if (name == "cosine_annealing") return end + (peak - end) * half_cosine(t / steps);
  if (name == "cosine") {
    if (t < warmup || (t == warmup && warmup > 0.0)) return start + (peak - start) * t / warmup;
    return t <= steps ? end + (peak - end) * half_cosine((t - warmup) / std::max(1.0, steps - warmup)) : end;
  }
  PHASOR_CHECK(name == "wsd", "unknown schedule " + name);
  if (t < warmup) return start + (peak - start) * t / warmup;
  if (t < steps - decay || decay == 0.0) return peak;
  return end + (peak - end) * descent(shape, std::min(1.0, (t - (steps - decay)) / decay));
}

}  // namespace phasor
