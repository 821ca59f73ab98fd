// SPDX-License-Identifier: Apache-2.0
// Verbs of accrue-run: the options of each, and the function that executes it and returns the exit status.
// command_line.cpp parses the options and calls the function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/log_import.h"
#include "accrue/run/process/program_group.h"
#include "spec_input.h"

namespace accrue::cli {

inline constexpr int status_done = 0;
inline constexpr int status_refused = 2;

struct SpecOptions {
  bool defaults = false;
  bool schema = false;
  bool megatron = false;
  std::string from_accelerate;
};
int print_spec(const SpecOptions& options);

struct PlanOptions {
  SpecInput input;
  bool json = false;
  bool dialects = false;
  bool megatron = false;
  bool differences = false;
};
int print_plan(const PlanOptions& options);
int print_trace(const SpecInput& input);

struct LayoutOptions {
  SpecInput input;
  bool json = false;
};
int print_schedule(const LayoutOptions& options);
int print_grid(const LayoutOptions& options);

struct RunOptions {
  SpecInput input;
  std::string dir;
  bool detach = false;
  bool quiet = false;
  int supervise_fd = -1;
  bool paused = false;  ///< hold before the first micro-step
};
int run_spec(const RunOptions& options);

/// Without a folder of its own the run continues in place; with one it becomes a branch.
struct ResumeOptions : RunOptions {
  std::string from;               ///< run, or checkpoint of a run
  std::string checkpoint;         ///< of the run: "step-100" or "best"; empty: the newest
  std::vector<std::string> sets;  ///< for a branch
};
int resume_run(const ResumeOptions& options);

struct AttachOptions {
  std::string dir;
  bool quiet = false;
};
int attach_to_run(const AttachOptions& options);

struct StopOptions {
  std::string dir;
  bool now = false;
  bool kill = false;
};
int stop_run(const StopOptions& options);

int pause_run(const std::string& dir);
int continue_run(const std::string& dir);
struct StepOptions {
  std::string dir;
  bool phase = false;
  bool update = false;
};
int step_run(const StepOptions& options);
struct StepsOptions {
  std::string dir;
  std::int64_t steps = 0;
};
int set_steps(const StepsOptions& options);

struct ShowOptions {
  std::string dir;
  bool json = false;
};
int show_run(const ShowOptions& options);

struct GenerateOptions {
  std::string dir;
  std::string prompt;
  std::string tokens;     ///< token ids instead of a text
  std::string tokenizer;  ///< KIND:FILE; empty: that of the run's dataset
  std::int64_t length = 64;
  double temperature = 1.0;
  std::int64_t top_k = 0;
  double top_p = 0.0;
  double top_p_decay = 0.0;
  double top_p_bound = 0.0;
  std::int64_t beams = 0;
  double length_penalty = 1.0;
  bool add_bos = false;
  std::uint64_t seed = 0;
};
int generate_text(const GenerateOptions& options);

struct CompareOptions {
  std::vector<std::string> dirs;
  bool json = false;
};
int compare_runs_of(const CompareOptions& options);

struct ExportOptions {
  std::string from;  ///< a spec; a run folder to export a record
  std::string to;
  std::string out;  ///< empty: standard output
  std::vector<std::string> sets;
  bool json = false;
};
int export_to(const ExportOptions& options);

struct BundleOptions {
  std::vector<std::string> dirs;
  std::string out;
  std::string spec;  ///< an additional spec
  bool with_weights = false;
};
int bundle_runs(const BundleOptions& options);

struct ImportOptions {
  std::string from;  ///< a bundle, or another tool's log: a file or a folder
  std::string dir;   ///< folder for a single imported run
  std::string into;  ///< parent of new run folders; empty: the user's runs
  std::string spec;  ///< file for the spec of a bundle; empty: none
  std::string step;  ///< column or key of steps; empty: found by its usual names
  GivenTags tags;
};
int import_records(const ImportOptions& options);

struct VerifyOptions {
  SpecInput input;
  std::int64_t updates = 0;  ///< number of windows to check; 0: those of the first epoch, within bounds
  bool json = false;
};
int verify_spec(const VerifyOptions& options);

struct LaunchOptions {
  ProgramGroupOptions group;
  std::string dir;
  int guard = -1;
};
int launch_programs(const LaunchOptions& launch);

struct DataBuildOptions {
  std::vector<std::string> texts;
  std::string prefix;
  std::string documents = "file";
  std::string json_key;
  std::string prompt_key;
  bool append_eod = false;
  std::string tokenizer = "bytes";
  bool keep_case = false;
  bool sentences = false;
};
int build_data(const DataBuildOptions& options);

struct DataShowOptions {
  std::string prefix;
  bool json = false;
};
int show_data(const DataShowOptions& options);

struct DataIndexOptions {
  std::string prefix;
  std::int64_t sequence_length = 0;
  std::vector<std::int64_t> samples;  ///< of train, valid and test; missing ones take one epoch
  std::uint32_t seed = 1234;
  std::string split = "969,30,1";
  bool json = false;
};
int index_data(const DataIndexOptions& options);

struct HelpOptions {
  std::string topic;  ///< empty: the list of topics
};
int print_manual(const HelpOptions& options);

struct DoctorOptions {
  bool json = false;
};
int check_installation(const DoctorOptions& options);

/// Prints an error on standard error and returns its exit status.
int report(const Error& error);
/// Prints problems of a run's record on standard error, one per line, each after `where`.
void warn_of(const std::vector<std::string>& problems, const std::string& where = {});

}  // namespace accrue::cli
