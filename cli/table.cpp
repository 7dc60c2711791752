#include "analysis/reference/reference.h"
#include "analysis/table/table.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/error.h"
#include "results/files.h"

namespace phasor::cli {

namespace {

void give(const std::string& text, const std::string& out) {
  if (out.empty()) {
    fmt::print("{}", text);
  } else {
    results::write_named(out, text);
    fmt::print(stderr, "written          {}\n", out);
  }
}

}  // namespace

int table(const Arguments& arguments) {
  std::string folder, format, form, out, compare, reference;
  bool require_complete = false, allow_mixed = false, as_paper = false;
  Options options(
      "phasor table DIR [--format terminal|csv|markdown|latex|json] [--form long|wide|trials|candidates] [--out FILE]\n"
      "       phasor table --reference NAME [--format ...] [--out FILE]",
      "Makes the ablation table of a sweep's folder, and writes DIR/table.long.csv; or shows a published one.\n"
      "exit codes: 0 done, 3 trials failed or are missing (with --require-complete), 2 a mistake in a file\n"
      "or option");
  options.positional("folder of a sweep", folder, false);
  options.text("format", format, "terminal (default of wide), csv (default of the other forms), markdown, latex or json");
  options.text("form", form,
               "wide (a line a row; default), long (a line a number; default of csv and json), trials, candidates");
  options.text("out", out, "write the table to a file");
  options.text("compare", compare, "published numbers beside ours: paper, or the name of a published table");
  options.text("reference", reference, "a published table with its averages recomputed: table1, table2, table3, or its name");
  options.flag("as-paper", as_paper, "average perplexities themselves, as papers do, not their logarithms");
  options.flag("require-complete", require_complete, "exit code 3 when a trial failed or is missing");
  options.flag("allow-mixed", allow_mixed, "put trials of different builds, processors, devices side by side");
  if (!options.parse(arguments)) return exit_code::done;
  if (folder.empty() == reference.empty()) {
    throw UserError(folder.empty() ? "phasor table: found neither the folder of a sweep nor --reference NAME, expected one of them"
                                   : "--reference: found with the folder of a sweep, expected alone; --compare puts both side by side");
  }
  if ((!reference.empty() || !compare.empty()) && !form.empty()) {
    throw UserError("--form: found with a published table, which has one form; leave it out");
  }
  if (!reference.empty()) {
    give(analysis::render(analysis::find_reference(reference), analysis::read_format(format.empty() ? "terminal" : format)), out);
    return exit_code::done;
  }

  if (format.empty()) format = form.empty() || form == "wide" ? "terminal" : "csv";
  const analysis::Format chosen_format = analysis::read_format(format);
  const bool data = chosen_format == analysis::Format::csv || chosen_format == analysis::Format::json;
  if (form.empty()) form = data ? "long" : "wide";
  const analysis::Form chosen_form = analysis::read_form(form);
  if (chosen_format == analysis::Format::terminal && chosen_form != analysis::Form::wide) {
    throw UserError("--form " + form + " --format terminal: the terminal shows the wide form alone, expected --format " +
                    "csv, markdown, latex or json");
  }
  const results::Manifest manifest = results::read_manifest(folder);
  const std::optional<results::Costs> costs = results::find_costs(folder);
  const results::Folder records = results::load_folder(folder, results::Steps::dropped);
  const analysis::Table made = analysis::make_table(
      manifest, records, {.allow_mixed = allow_mixed, .as_paper = as_paper, .costs = costs ? &*costs : nullptr});
  give(compare.empty() ? analysis::render(made, chosen_format, chosen_form) : analysis::compare(made, compare, chosen_format), out);
  const std::string csv = folder + "/table.long.csv";
  const bool terminal = out.empty() && chosen_format == analysis::Format::terminal;
  try {
    results::write_named(csv, analysis::render(made, analysis::Format::csv, analysis::Form::longer));
    fmt::print(terminal ? stdout : stderr, "csv           {}\n", csv);
  } catch (const UserError& error) {
    fmt::print(stderr, "phasor: {}\n", error.what());
  }
  if (!terminal) {  // which lists them itself
    for (const std::string& line : analysis::unfinished(made)) fmt::print(stderr, "{}\n", line);
  }
  return require_complete && !made.complete() ? exit_code::incomplete : exit_code::done;
}

}  // namespace phasor::cli
