#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace phasor::cli {

/// The options of one subcommand. Boost.Program_options behind it, in one file.
class Options {
 public:
  /// `usage`: "phasor run FILE.json [options]"; `about`: what the command does, then what its exit codes mean.
  Options(std::string usage, std::string about);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  void flag(const std::string& name, bool& target, const std::string& help);
  void text(const std::string& name, std::string& target, const std::string& help);
  void integer(const std::string& name, std::optional<std::int64_t>& target, std::int64_t lowest,
               const std::string& help);
  /// May be given many times. `value` is what the help calls one: "PATH=VALUE".
  void list(const std::string& name, std::vector<std::string>& target, const std::string& value,
            const std::string& help);
  /// The same, and words with "=" that have no option of their own belong to it where it is given: `--NAME a=1 b=2`.
  void pairs(const std::string& name, std::vector<std::string>& target, const std::string& help);
  /// The argument without a name.
  void positional(const std::string& what, std::string& target, bool required);
  /// Arguments without a name, any number.
  void positionals(const std::string& what, std::vector<std::string>& target);
  /// Not in the help: for processes that we start.
  void hidden(const std::string& name, std::optional<std::int64_t>& target);

  /// False when --help was asked for and printed. UserError for what cannot be understood.
  bool parse(const std::vector<std::string>& arguments);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace phasor::cli
