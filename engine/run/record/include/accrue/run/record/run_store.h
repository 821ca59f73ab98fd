// SPDX-License-Identifier: Apache-2.0
// The run folder: spec.toml, plan.json, events.jsonl, run.lock, ranks/R.log, checkpoints/, final/, summary.json. Only
// the supervisor holds a RunWriter. It flocks run.lock, which the ranks inherit, so the lock outlives the supervisor
// until the last rank has ended. Readers need no lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"
#include "accrue/run/events/event_reader.h"
#include "accrue/run/preflight/run_order.h"
#include "accrue/run/record/best_checkpoint.h"
#include "accrue/run/record/plan_check.h"
#include "accrue/run/record/run_lock.h"

namespace accrue {

/// $XDG_DATA_HOME/accrue/runs (absolute values only), else ~/.local/share/accrue/runs.
std::filesystem::path default_runs_dir();
/// Returns a short unique id of time and random letters, valid as a folder and socket name ("20261121-142233-k3f9").
std::string new_run_id();

/// Name of the file that marks the folder of a run from a bundle.
inline constexpr const char* import_mark = "imported.json";

/// Prefix of the message of a run that was imported from another tool's log.
inline constexpr const char* import_reason = "imported from ";

/// Returns the name of a run: that of its spec, else a description such as "gpt N=4 2 ranks", or the name of a
/// library's model. `steps`: N as planned.
std::string run_name(const RunSpec& spec, std::int64_t steps);

/// Summary of one folder for a list of runs, read without the events if summary.json exists.
struct RunSummary {
  std::filesystem::path dir;
  std::string run_id;
  std::string name;
  RunSpec spec;
  std::int64_t steps = 0;        ///< planned N, which may follow from a global batch or a rank's memory
  std::int64_t micro_batch = 0;  ///< as planned
  std::string state;  ///< running (a process holds the lock), finished, stopped, failed, interrupted (no process holds
                      ///< it, and no end is recorded)
  std::int64_t updates = 0;
  std::int64_t planned_updates = 0;
  double loss = 0.0;                    ///< of the last update that had a labelled item
  std::int64_t empty_windows = 0;       ///< of the updates: without a labelled item
  std::int64_t overflowed_windows = 0;  ///< of the updates: with a non-finite loss or gradient
  double seconds = 0.0;
  double paused_seconds = 0.0;  ///< of them, while held; 0 if the summary does not say
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::optional<ExactnessCheck> exactness;  ///< the deciding check; nullopt if there was none or it is unknown
  std::string weights_sha256;
  std::string spec_sha256;             ///< of spec.toml when the run last started
  std::string last_checkpoint;         ///< "step-100" or empty
  std::optional<BestCheckpoint> best;  ///< if it is kept (checkpoint.best)
  std::string started_at;
  std::string branched_from;           ///< id of the run whose checkpoint it started from
  bool imported = false;               ///< came in a bundle: can be shown and compared, not resumed
  std::string message;                 ///< why it failed
  std::vector<std::string> problems;   ///< damaged, changed or missing parts of the folder; one sentence each
  std::vector<PlanFigure> plan_check;  ///< plan compared with the ranks' counts, once they are known

  bool has_loss() const { return updates > empty_windows; }
};

/// Whether a run is another tool's log: its spec contains only its name.
bool is_imported(const RunSummary& run);

class RunWriter {
 public:
  /// Makes a new run folder, or takes an empty one of this user, or one in which a start failed before its plan was
  /// written. A refusal leaves nothing behind. Errors: contains something else, is not a folder, is a link or another
  /// user's (config); cannot be written, less than 64 MiB free (disk).
  static Result<RunWriter> create(const std::filesystem::path& dir, const std::string& spec_toml);
  /// Opens an existing folder to append: takes the lock, cuts off a torn last line, removes remains of killed
  /// processes. Errors: held by another process, newer version, no regular files.
  static Result<RunWriter> reopen(const std::filesystem::path& dir);
  RunWriter(RunWriter&&) noexcept;
  RunWriter& operator=(RunWriter&&) noexcept;
  ~RunWriter();

  /// Appends the event, as its received line if there is one. Data reach the disk within a second (sync_if_due) or at
  /// sync(). An event is in the file whole or not at all. When the disk is full, a reserve of 64 MiB is released first,
  /// so that the last events of a run still fit. Errors (disk): no space is left, with the amount that is missing.
  Result<void> append(const RunEvent& event, std::string_view received = {});
  /// Whether the reserve is used up: the run should save its state and end.
  bool reserve_spent() const { return reserve_spent_; }
  Result<void> sync();
  Result<void> sync_if_due(std::chrono::steady_clock::time_point now);
  Result<void> write_plan(const std::string& json);
  /// Whether this writer wrote the folder's plan; false after reopen().
  bool wrote_plan() const { return wrote_plan_; }
  Result<void> write_summary(const RunSummary& summary);
  /// Removes everything that was made in a new folder whose run cannot start, so that the folder can be used again.
  void give_up();
  /// Appends to ranks/R.log. More than 64 MiB per rank is dropped and counted. Errors (disk): the first time that
  /// something is lost because the log cannot be written.
  Result<void> append_log(std::int64_t rank, std::string_view bytes);
  const std::filesystem::path& dir() const { return dir_; }
  /// Descriptor for the ranks to inherit: keeps the folder locked while any of them lives.
  int lock_fd() const { return lock_.fd(); }
  /// Next seq per rank; append() updates it.
  const std::map<std::int64_t, std::int64_t>& next_seq() const { return next_seq_; }
  /// Time of the last stored event, from which a resumed run's clock continues.
  std::int64_t last_time_ns() const { return last_time_ns_; }

 private:
  struct RankLog {
    OwnedFd fd;
    std::int64_t bytes = 0;
    std::int64_t dropped = 0;
    bool failed = false;
  };
  RunWriter() = default;
  Result<void> begin_folder(const std::string& spec_toml);
  Result<void> continue_events();
  Result<void> open_events();
  void reserve_space();
  int write_line(std::string_view line);

  std::filesystem::path dir_;
  RunLock lock_;
  OwnedFd events_fd_;
  OwnedFd reserve_fd_;
  bool reserve_spent_ = false;
  bool wrote_plan_ = false;
  bool dirty_ = false;
  bool torn_ = false;  ///< the file ends with a partial line that could not be cut off
  std::chrono::steady_clock::time_point last_sync_{};
  std::int64_t events_bytes_ = 0;
  std::int64_t last_time_ns_ = 0;
  std::map<std::int64_t, std::int64_t> next_seq_;
  std::map<std::int64_t, RankLog> logs_;
};

struct ClaimedFolder {
  RunWriter writer;
  bool continues = false;  ///< the folder already held the run
};

/// Takes order.run_dir for ranks without a supervisor. Makes a new folder with spec.toml and plan.json, or continues
/// the folder's run if its spec and data match the order; the order then takes over the record's plan, id, checkpoint,
/// clock and event numbers. Nothing is overwritten. Keep the writer while the ranks train. Errors: another run, one in
/// use, an imported one, not a run, a link, another user's folder (config); changed data (data); cannot be written
/// (disk); a damaged record (protocol).
Result<ClaimedFolder> claim_run_folder(RunOrder& order);
/// Does the same for a program with its own loop, whose folder has no plan: the order supplies its ranks and its spec.
/// Errors: as claim_run_folder(); a run with a plan (config).
Result<ClaimedFolder> claim_loop_folder(RunOrder& order);

/// Reads only. Damaged parts are named in the summary's problems, and replaced from other files of the folder. Errors
/// (config): not a run folder.
Result<RunSummary> read_run(const std::filesystem::path& dir);

/// Returns the absolute path of a run's folder. Errors: config if it is not one.
Result<std::filesystem::path> run_folder_at(const std::filesystem::path& folder);
/// Returns its problems, and those found when all of its events were read. `last_update`: that of the last event.
std::vector<std::string> record_problems(const RunSummary& run, const ReadProblems& events, std::int64_t last_update);
std::vector<RunSummary> list_runs(const std::filesystem::path& runs_dir);
/// Whether a supervisor or a rank holds the folder's lock.
bool is_locked(const std::filesystem::path& dir);
/// Returns the output of "show --json", which is also the contents of summary.json beside its hash; without the spec.
std::string to_json(const RunSummary& summary);

}  // namespace accrue
