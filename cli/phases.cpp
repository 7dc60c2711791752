#include "cli/phases.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <utility>

#include "analysis/table/table.h"
#include "results/store.h"

namespace phasor::cli {

Phases::Phases(sweeps::Sweep sweep, sweeps::RunnerOptions options, const Registry& registry)
    : sweep_(std::move(sweep)),
      options_(std::move(options)),
      registry_(registry),
      selected_(sweep_.expansion.trials.size()),
      planned_(sweep_.expansion.manifest.awaiting) {
  look();
  if (confirms() && sweeps::to_run(sweep_.expansion, state_, options_).empty()) choose();
}

void Phases::look() {
  state_ = sweeps::read_folder(options_.folder, sweep_.expansion);
  sweeps::find_stale(state_, options_.folder, registry_);
}

/// As the table will choose. Whether trials of different builds may stand side by side is for the table to say.
void Phases::choose() {
  const results::Folder records = results::load_folder(options_.folder, results::Steps::dropped);
  const analysis::Table table = analysis::make_table(sweep_.expansion.manifest, records, {.allow_mixed = true});
  sweeps::confirm(sweep_.expansion, table.chosen);
  look();
}

std::int64_t Phases::trials() const {
  return static_cast<std::int64_t>(sweep_.expansion.trials.size()) + sweep_.expansion.manifest.awaiting;
}

std::int64_t Phases::to_run() const {
  const std::size_t known = sweeps::to_run(sweep_.expansion, state_, options_).size();
  return static_cast<std::int64_t>(known) + sweep_.expansion.manifest.awaiting;
}

std::string Phases::confirmed() const {
  if (!confirms()) return "";
  const std::int64_t cells = sweep_.expansion.confirmed_cells, each = planned_ / cells;
  const auto axis = std::find_if(sweep_.spec.axes.begin(), sweep_.spec.axes.end(), [](const sweeps::Axis& a) { return a.fresh > 0; });
  return fmt::format("{} cells x {} fresh {}{} = {} trials", cells, each, axis->name, each == 1 ? "" : "s", planned_);
}

/// Some of the trials, as a sweep of their own; the manifest is that of all.
sweeps::RunSummary Phases::run_part(const std::string& title, std::size_t first, std::size_t last) const {
  sweeps::Sweep part;
  part.spec = sweep_.spec;
  part.spec.name = title;
  part.expansion.manifest = sweep_.expansion.manifest;
  sweeps::FolderState state = state_;
  state.ended.clear();
  for (std::size_t i = first; i < last; ++i) {
    const Trial& trial = sweep_.expansion.trials[i];
    part.expansion.trials.push_back(trial);
    part.expansion.first_cell.push_back(sweep_.expansion.first_cell[i]);
    if (const auto ended = state_.ended.find(trial.id); ended != state_.ended.end()) state.ended.insert(*ended);
  }
  return sweeps::run_sweep(part, state, options_);
}

sweeps::RunSummary Phases::run() {
  if (!confirms()) return sweeps::run_sweep(sweep_, state_, options_);
  sweeps::RunSummary all = run_part("select", 0, selected_);
  if (all.missing > 0 || all.interrupted) {
    all.missing += trials() - static_cast<std::int64_t>(selected_);
    return all;
  }
  if (sweep_.expansion.manifest.awaiting > 0) choose();
  const analysis::TableSpec table = analysis::read_table_spec(sweep_.spec.table);
  std::string names;
  for (const sweeps::Axis& axis : sweep_.spec.axes) {
    if (axis.role == "select") names += (names.empty() ? "" : ", ") + axis.name;
  }
  fmt::print("select   {}/{} done   {} chosen on {}, {}\n", selected_, selected_, names, described(table.select->series), to_text(table.select->at));
  if (all.failed > 0)
    fmt::print("select   {} failed: a value with a failed trial is not chosen where another is whole; --retry-failed runs them again and, "
               "where that changes the choice, its confirmation\n", all.failed);
  const std::int64_t fresh = trials() - static_cast<std::int64_t>(selected_);
  if (fresh < planned_) fmt::print("confirm  {} trials less: where no value is whole there is nothing to confirm\n", planned_ - fresh);
  std::fflush(stdout);
  const sweeps::RunSummary more = run_part("confirm", selected_, sweep_.expansion.trials.size());
  all.done += more.done;
  all.diverged += more.diverged;
  all.failed += more.failed;
  all.missing += more.missing;
  all.kept += more.kept;
  all.started += more.started;
  all.seconds += more.seconds;
  all.interrupted = more.interrupted;
  all.killed = more.killed;
  return all;
}

void print_stale(const sweeps::FolderState& state) {
  if (state.stale.empty()) return;
  fmt::print("other revision   {} records were made by other code ({}); --retry-stale runs them again\n", state.stale.size(),
             state.stale.front().revisions);
}

void print_product(const Phases& phases) {
  const sweeps::Sweep& sweep = phases.sweep();
  std::string product;
  std::size_t cells = 1;
  for (const sweeps::Axis& axis : sweep.spec.axes) {
    product += fmt::format("{}{} {}", product.empty() ? "" : " x ", axis.visited(), axis.name);
    cells *= axis.visited();
  }
  const sweeps::Expansion& expansion = sweep.expansion;
  fmt::print("{:<16} {} = {} cells\n", sweep.spec.name, product, cells);
  if (const std::string confirmed = phases.confirmed(); !confirmed.empty()) fmt::print("{:<16} + confirm {}\n", "", confirmed);
  if (expansion.excluded > 0)
    fmt::print("{:<16} {} cells by exclude, n/a in the table\n", "left out", expansion.excluded);
  if (expansion.repeated > 0) {
    fmt::print("{:<16} {} cells are the same trial as another cell: run once, counted in each\n", "equal",
               expansion.repeated);
  }
  fmt::print("{:<16} {}\n", "trials", phases.trials());
}

}  // namespace phasor::cli
