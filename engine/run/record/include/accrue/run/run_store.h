// SPDX-License-Identifier: Apache-2.0
// The run folder: spec.toml, plan.json, events.jsonl, run.lock, ranks/R.log, checkpoints/, final/, summary.json.
// RunWriter is what the supervisor alone holds (flock on run.lock, inherited by the ranks so that it outlives the
// supervisor until the last rank is gone); readers open freely.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/event_reader.h"
#include "accrue/run/plan_check.h"
#include "accrue/run/result.h"
#include "accrue/run/run_lock.h"
#include "accrue/run/run_order.h"

namespace accrue {

/// $XDG_DATA_HOME/accrue/runs (absolute values only), else ~/.local/share/accrue/runs.
std::filesystem::path default_runs_dir();
/// A short unique id: time and random letters, fit for a folder and a socket name ("20261121-142233-k3f9").
std::string new_run_id();

/// The file that marks the folder of a run which came in a bundle.
inline constexpr const char* import_mark = "imported.json";

/// What the message of a run begins with that was imported from the log of another tool.
inline constexpr const char* import_reason = "imported from ";

/// What a run is called: as its spec says, else by what it trains: "gpt N=4 2 ranks", or a library's model by its name.
/// `steps`: N as the run is planned.
std::string run_name(const RunSpec& spec, std::int64_t steps);

/// What a list of runs shows of one folder, read without the events where summary.json exists.
struct RunSummary {
  std::filesystem::path dir;
  std::string run_id;
  std::string name;
  RunSpec spec;
  std::int64_t steps = 0;        ///< N as planned: it may follow from a global batch or the memory of a rank
  std::int64_t micro_batch = 0;  ///< as planned
  std::string state;  ///< running (a process holds the lock), finished, stopped, failed, interrupted (no process holds
                      ///< it, no end recorded)
  std::int64_t updates = 0;
  std::int64_t planned_updates = 0;
  double loss = 0.0;                    ///< of the last update that had a labelled item
  std::int64_t empty_windows = 0;       ///< of the updates, those without one
  std::int64_t overflowed_windows = 0;  ///< and those whose loss or gradient was not finite
  double seconds = 0.0;
  double paused_seconds = 0.0;  ///< of them, held; 0 where the summary does not say
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::optional<ExactnessCheck> exactness;  ///< the check that decides; nullopt where none was or none is told
  std::string weights_sha256;
  std::string spec_sha256;      ///< of spec.toml as it was when the run last started
  std::string last_checkpoint;  ///< "step-100" or empty
  std::string started_at;
  std::string branched_from;           ///< id of the run whose checkpoint it began with
  bool imported = false;               ///< came in a bundle: shown and compared, never continued
  std::string message;                 ///< why it failed
  std::vector<std::string> problems;   ///< what of the folder is damaged, changed or missing; one sentence each
  std::vector<PlanFigure> plan_check;  ///< what was planned beside what the ranks counted, once they have

  bool has_loss() const { return updates > empty_windows; }
};

/// Whether a run is the log of another tool: all that its spec knows is its name.
bool is_imported(const RunSummary& run);

class RunWriter {
 public:
  /// Makes a new run folder, or takes an empty one of this user, or one in which a start failed before its plan was
  /// written. A refusal leaves nothing behind. Errors: holds something else, is no folder, a link or another user's
  /// (config); cannot be written, less than 64 MiB free (disk).
  static Result<RunWriter> create(const std::filesystem::path& dir, const std::string& spec_toml);
  /// Opens an existing one to append: takes the lock, cuts a torn last line off, clears what killed processes left
  /// unfinished. Errors: held by another process, newer version, no regular files.
  static Result<RunWriter> reopen(const std::filesystem::path& dir);
  RunWriter(RunWriter&&) noexcept;
  RunWriter& operator=(RunWriter&&) noexcept;
  ~RunWriter();

  /// Appends the event, as the line that was received for it where there is one; data reach the disk at the latest one
  /// second later (sync_if_due) or at sync(). An event is in the file whole or not at all. When the disk fills up, a
  /// reserve of 64 MiB is given back first, so that the last events of a run still find room. Errors (disk): nothing is
  /// left, saying how much is missing.
  Result<void> append(const RunEvent& event, std::string_view received = {});
  /// True once the reserve is spent: the run should save what it has and end.
  bool reserve_spent() const { return reserve_spent_; }
  Result<void> sync();
  Result<void> sync_if_due(std::chrono::steady_clock::time_point now);
  Result<void> write_plan(const std::string& json);
  /// This writer wrote the plan that the folder holds; false after reopen().
  bool wrote_plan() const { return wrote_plan_; }
  Result<void> write_summary(const RunSummary& summary);
  /// Of a new folder whose run cannot start: removes what was made, so that the folder can be used again.
  void give_up();
  /// Appends to ranks/R.log; more than 64 MiB a rank is dropped and counted. Errors (disk): the first time that
  /// something is lost because the log cannot be written.
  Result<void> append_log(std::int64_t rank, std::string_view bytes);
  const std::filesystem::path& dir() const { return dir_; }
  /// For the ranks to inherit: keeps the folder locked while any of them lives.
  int lock_fd() const { return lock_.fd(); }
  /// The seq that would come next, per rank; follows append.
  const std::map<std::int64_t, std::int64_t>& next_seq() const { return next_seq_; }
  /// Time of the last stored event: a resumed run's clock goes on from it.
  std::int64_t last_time_ns() const { return last_time_ns_; }

 private:
  struct RankLog {
    int fd = -1;
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
  void close_all();

  std::filesystem::path dir_;
  RunLock lock_;
  int events_fd_ = -1;
  int reserve_fd_ = -1;
  bool reserve_spent_ = false;
  bool wrote_plan_ = false;
  bool dirty_ = false;
  bool torn_ = false;  ///< part of a line is in the file and could not be cut off
  std::chrono::steady_clock::time_point last_sync_{};
  std::int64_t events_bytes_ = 0;
  std::int64_t last_time_ns_ = 0;
  std::map<std::int64_t, std::int64_t> next_seq_;
  std::map<std::int64_t, RankLog> logs_;
};

struct ClaimedFolder {
  RunWriter writer;
  bool continues = false;  ///< the folder held the run
};

/// Takes order.run_dir for ranks that no supervisor started: makes a new folder with spec.toml and plan.json, or
/// continues the run that the folder holds if its spec and data are those of the order, whose plan, id, checkpoint,
/// clock and numbers of events become the record's own. What is there is never written over. The writer is to be kept
/// while the ranks train. Errors: another run, one in use, one that was imported, no run at all, a link, another user's
/// folder (config); changed data (data); cannot be written (disk); a damaged record (protocol).
Result<ClaimedFolder> claim_run_folder(RunOrder& order);
/// The same for a program with a loop of its own, whose folder has no plan: of an order with its ranks and its spec.
/// Errors: as claim_run_folder(); a run with a plan (config).
Result<ClaimedFolder> claim_loop_folder(RunOrder& order);

/// Reads only; what is damaged is named in the summary's problems and replaced by what another file of the folder says.
/// Errors (config): not a run folder.
Result<RunSummary> read_run(const std::filesystem::path& dir);

/// The absolute path of a folder that holds a run. Errors: config, where it holds none.
Result<std::filesystem::path> run_folder_at(const std::filesystem::path& folder);
/// Its problems, and what reading all of its events found: `last_update` is that of the last one.
std::vector<std::string> record_problems(const RunSummary& run, const ReadProblems& events, std::int64_t last_update);
std::vector<RunSummary> list_runs(const std::filesystem::path& runs_dir);
/// True while a supervisor or a rank holds the folder's lock.
bool is_locked(const std::filesystem::path& dir);
/// What "show --json" prints, and summary.json holds beside the hash of its contents; the spec is not repeated in it.
std::string to_json(const RunSummary& summary);

}  // namespace accrue
