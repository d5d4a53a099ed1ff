// A subcommand's command line: options in two groups, help with examples, typed values.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <vector>

#include "accounting/accounting.h"
#include "cache/prediction_cache.h"
#include "cli/command.h"
#include "hardware/gpu_model.h"
#include "timing/simulate.h"

namespace forewarp::cli {

class CommandLine {
 public:
  /// `usage` follows "forewarp" in the help; `purpose` says in a sentence or two what the command is for.
  CommandLine(std::string usage, std::string purpose, std::vector<std::string> examples);

  boost::program_options::options_description_easy_init model();   ///< options for what is predicted
  boost::program_options::options_description_easy_init output();  ///< options for where results go
  /// Positional arguments in order; each is required unless `optional`.
  void positional(const std::string& name, bool optional = false);
  /// All further positional arguments, for `texts(name)`.
  void rest(const std::string& name, bool optional = false);

  // Options that several commands share.
  void add_gpu();  ///< --gpu and --set
  void add_set();
  void add_simulation();  ///< --full, --cache, and the effort
  void add_effort();      ///< --memory, --budget, --precision, --exact
  void add_causes();      ///< --causes
  void add_record();      ///< --warps, --warps-cycles
  void add_threads();
  void add_assume_opcodes();
  void add_architecture();  ///< --sm, for commands without a GPU
  void add_json();
  void add_cache();  ///< --no-cache, --cache-folder

  /// False if help was asked for, which is then printed. Throws UsageError and Boost's errors.
  bool parse(const Arguments&);

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  /// Whether its value is the one that it has by default.
  bool is_default(const std::string& name) const { return has(name) && values_[name].defaulted(); }
  std::string text(const std::string& name) const;  ///< UsageError if it was not given
  int whole_number(const std::string& name) const { return values_[name].as<int>(); }
  std::vector<std::string> texts(const std::string& name) const;
  double number(const std::string& name) const;
  std::optional<std::string> json() const;
  GpuModel gpu() const;  ///< of --gpu with the changes of --set
  std::vector<std::string> changes() const { return texts("set"); }
  SimulateOptions simulation() const;
  Causes causes() const;
  std::optional<RecordRequest> record() const;
  Effort effort() const;
  unsigned threads() const;
  int architecture() const;                      ///< of --sm, 0 if it was not given
  std::optional<PredictionCache> cache() const;  ///< nothing if switched off or without a folder

 private:
  void print_help() const;

  std::string usage_, purpose_;
  std::vector<std::string> examples_;
  boost::program_options::options_description model_{"Input"}, output_{"Output"}, help_{"Common"}, hidden_;
  std::vector<std::pair<std::string, bool>> positional_;
  std::string rest_;  ///< takes the remaining arguments; empty: there may be none
  boost::program_options::variables_map values_;
};

/// What a launch may take of a processor; what is looked at in detail goes with it.
void give_seconds(SimulateOptions&, double seconds);

}  // namespace forewarp::cli
