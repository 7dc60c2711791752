#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/graph/launch.h"
#include "experiments/spec.h"
#include "experiments/thread_pool.h"

namespace phasor {

/// A model that reads the beginning of rows and goes on by itself, a token of every row at a time with carried state (greedy),
/// to measure what that takes. Parameters are as at the start and tokens arbitrary: neither changes the time. Rows are dealt to
/// the threads of the spec; a thread reads its rows in micro-batches and continues all of them together.
class Continuation {
 public:
  /// UserError when a row of the task has nothing to continue: it is read at its last position, as a whole.
  Continuation(const ExperimentSpec& spec, std::int64_t rows);
  ~Continuation();

  void read(std::int64_t tokens);  // forgets everything, then reads the beginning of every row
  void step();                     // one more token of every row, the most likely one after the last

  std::vector<std::vector<std::int32_t>> read_tokens() const;  // of every row, as `read` was told them
  std::vector<std::int32_t> next_tokens() const;               // of every row, the most likely one after the last

  std::int64_t state_bytes() const;   // carried for all rows
  std::int64_t memory_bytes() const;  // parameters, and the most that states and passes have taken so far
  std::int64_t parameters() const;    // numbers
  std::int64_t threads() const { return pool_->threads(); }
  /// What a step reads at least: every parameter once (of a table of embeddings the rows of its tokens), the states once.
  std::int64_t least_step_bytes() const;
  /// What a step launches that follows `tokens` tokens of `rows` rows, walked through without computing anything.
  Profile count_step(std::int64_t rows, std::int64_t tokens) const;

 private:
  struct Part;
  void read_rows(Part&, std::int64_t tokens) const;
  void step_rows(Part&) const;

  const ExperimentSpec& spec_;
  std::unique_ptr<Task> task_;
  ParameterStore parameters_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<Part>> parts_;  // of the threads
};

/// How decoding is measured.
struct DecodeOptions {
  std::int64_t rows = 0;               // continued together; 0: the experiment's batch
  std::vector<std::int64_t> contexts;  // tokens read before the measured ones; empty: `default_contexts`
  std::int64_t rounds = 10;            // each with one step of training, one prefill, `tokens` tokens at every context
  bool training = false;               // measure the step of training too
};

/// How many tokens are decoded one after the other at each context: a quarter of the rows' length, at most 16.
std::int64_t decoded_tokens(const ExperimentSpec& spec);
/// A quarter of the experiment's length, the length, four times it; none beyond the longest row, which every encoding knows.
std::vector<std::int64_t> default_contexts(const ExperimentSpec& spec);

struct DecodeResult {
  std::int64_t parameters = 0, rows = 0;
  std::int64_t tokens = 0;               // of a row: the experiment's length
  std::vector<double> training_seconds;  // of a step, one per round; empty unless asked for
  std::vector<double> prefill_seconds;   // of all rows, one per round
  struct Place {
    std::int64_t context = 0;
    std::vector<double> step_seconds;  // of one more token of every row: rounds x decoded_tokens
    std::int64_t state_bytes = 0;      // of one row after the context
    std::int64_t least_bytes = 0;      // Continuation::least_step_bytes
    Profile step;                      // launches of one thread for its rows
  };
  std::vector<Place> places;       // by rising context
  std::size_t main = 0;            // the place of the experiment's length, or the next shorter one
  std::int64_t memory_bytes = 0;   // the most in use while rows were read and continued at the experiment's length
};
/// Several experiments in turn: what changes on the machine meanwhile meets all of them.
std::vector<DecodeResult> measure_decoding(const std::deque<ExperimentSpec>& specs, const DecodeOptions& options);

}  // namespace phasor
