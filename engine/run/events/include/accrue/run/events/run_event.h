// SPDX-License-Identifier: Apache-2.0
// RunEvent: one line of events.jsonl or of a rank's channel, as a value. engine/run/EVENTS.md describes the kinds and
// fields for readers of the files. Non-finite doubles are kept; the codec spells them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accrue/run/events/collective_purpose.h"
#include "accrue/run/events/step_phase.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue {

inline constexpr int event_format_version = 2;
inline constexpr std::int64_t supervisor_rank = -1;

struct RunStarted {
  std::string run;
  std::string spec_sha256;
  std::string plan_json;      ///< plan_summary_json, an object in the file
  std::string versions_json;  ///< {"accrue": ..., "events": ...}
  std::string host_json;
  std::string started_at;  ///< UTC, ISO 8601
  bool resumed = false;
  std::int64_t resumed_update = 0;
  std::int64_t resumed_position = 0;  ///< completed micro-steps of the window after it
  std::string branched_from;          ///< id of the run whose checkpoint this one started from
  bool operator==(const RunStarted&) const = default;
};
struct RankReady {
  std::int64_t data = 0, pipeline = 0, tensor = 0;  ///< coordinates
  std::string device;
  std::int64_t pid = 0;
  std::string backend;
  std::int64_t threads = 1;
  std::string instruction_set;  ///< common to all ranks: "generic", "AVX2", "AVX512"
  std::string updates_by;       ///< implementation of the optimizer's updates: "kernels", "CUDA kernels", "operators"
  std::string products_by;  ///< implementation of matrix products of 96 rows and more: "tiles" (our own), "LibTorch"
  bool operator==(const RankReady&) const = default;
};
/// Arrays of equal length, one entry per micro-step. A micro-step's place in its window is copied from the MicroPlan
/// that the rank trained by, so readers need not walk the plan.
struct MicroSteps {
  std::vector<std::int64_t> micro_step;
  std::vector<std::int64_t> update;    ///< the update that ends its window, from 1
  std::vector<std::int64_t> position;  ///< in the window, from 1
  std::vector<std::int64_t> size;      ///< micro-steps of the window
  std::vector<std::int64_t> epoch;     ///< from 0
  std::vector<std::int64_t> batch;     ///< in the epoch, from 0
  std::vector<double> loss;            ///< this rank's mean over the micro-batch's items
  std::vector<std::int64_t> tokens;    ///< items the loss summed
  std::vector<std::int64_t> samples;
  std::vector<std::int64_t> end_ns;      ///< of its last operation, from the run's origin
  std::vector<std::int64_t> compute_ns;  ///< duration of its operations
  bool operator==(const MicroSteps&) const = default;
};

/// Kind of a rank's computation. Communication has its own event, Sync, which names the axis.
enum class ComputeKind { forward, backward, step };
/// "forward", "backward", "step".
std::string_view to_string(ComputeKind kind);

/// Spans of computation: arrays of equal length, one entry per operation, in order of execution.
struct Operations {
  std::vector<ComputeKind> kind;
  std::vector<std::int64_t> micro_step;  ///< of a step: the boundary's
  std::vector<std::int64_t> chunk;       ///< the model part on this rank, from 0
  std::vector<std::int64_t> begin_ns;    ///< from the run's origin
  std::vector<std::int64_t> end_ns;
  bool operator==(const Operations&) const = default;
};
/// Arrays of equal length, one entry per communication operation.
struct Sync {
  std::vector<std::int64_t> update;
  std::vector<std::int64_t> micro_step;
  std::vector<std::string> axis;  ///< "data", ...
  std::vector<std::string> op;    ///< "all_reduce", "broadcast", "send", ...
  std::vector<CollectivePurpose> purpose;
  std::vector<std::int64_t> bytes;  ///< payload of this rank
  std::vector<std::int64_t> begin_ns;
  std::vector<std::int64_t> end_ns;
  bool operator==(const Sync&) const = default;
};

/// Numbers by name.
using NamedNumbers = std::map<std::string, double>;
/// Parts of a loss that is a sum, by name: "lm loss", "sop loss". Empty for a loss without parts.
using NamedLosses = NamedNumbers;

struct Update {
  std::int64_t update = 0;      ///< updates done, from 1
  std::int64_t micro_step = 0;  ///< the boundary's
  std::int64_t samples = 0;     ///< over all ranks since the run began
  std::int64_t tokens = 0;      ///< over all ranks since the run began
  double epoch = 0.0;
  double loss = 0.0;                     ///< the loss that the gradient belongs to, over all ranks
  std::optional<double> lr = {};         ///< the rate of this update; none if the log of another tool lacks it
  std::optional<double> grad_norm = {};  ///< before clipping; none likewise
  StepOutcome outcome = StepOutcome::updated;
  double seconds = 0.0;                       ///< wall time since the run began
  double compute_seconds = 0.0;               ///< forward, backward and optimizer time since the run began, this rank
  std::string reason;                         ///< full, epoch_end, run_end
  std::int64_t steps = 0;                     ///< N of its window; 0: unknown
  std::int64_t dropped_batches = 0;           ///< of the epoch that ends here, never trained on
  std::vector<double> weights = {};           ///< run.record_weights only
  NamedLosses losses = {};                    ///< parts of the loss
  std::optional<double> loss_scale = {};      ///< loss scale after this update, if losses are scaled
  std::optional<double> update_norm = {};     ///< run.update_norm only: L2 norm of what the update added to the weights
  std::optional<double> parameter_norm = {};  ///< run.parameter_norm only: L2 norm of the weights after the update
  std::optional<std::int64_t> gradient_zeros = {};  ///< run.gradient_zeros only: elements of the gradient that are 0
  NamedNumbers scalars = {};                        ///< other measurements of the program, under its own names
  std::int64_t empty_windows = 0;                   ///< since the run began: windows without a labelled item
  std::int64_t overflowed_windows = 0;              ///< since the run began: windows with a non-finite loss or gradient
  bool operator==(const Update&) const = default;
};
struct Evaluation {
  std::int64_t update = 0;
  double loss = 0.0;
  std::int64_t batches = 0;
  std::int64_t tokens = 0;
  NamedLosses losses = {};    ///< as in Update
  NamedNumbers scalars = {};  ///< likewise
  bool operator==(const Evaluation&) const = default;
};
/// The gradient of one window against that of the same samples in one batch (see exactness.h).
struct ExactnessCheck {
  std::int64_t update = 0;
  double max_abs = 0.0;
  double relative = 0.0;
  double cosine = 0.0;
  double ratio = 0.0;
  double tolerance = 0.0;
  std::string verdict;          ///< "exact", "close", "not"
  std::string reason;           ///< to_string(ExactnessReason); empty if none is needed
  std::string message;          ///< the reason as a sentence
  std::int64_t reductions = 0;  ///< of this window
  std::int64_t needed = 0;      ///< that it needs
  double seconds = 0.0;         ///< time of the check
  bool operator==(const ExactnessCheck&) const = default;
};
/// N was set by hand during the run (see WindowShape::steps_set).
struct StepsChanged {
  std::int64_t update = 0;      ///< updates done when it took effect
  std::int64_t micro_step = 0;  ///< the last micro-step before it
  std::int64_t steps = 0;       ///< N from then on
  bool repeated = false;        ///< already reported by the run that this one continues
  bool operator==(const StepsChanged&) const = default;
};
struct CheckpointDone {
  std::int64_t update = 0;
  std::string path;  ///< relative to the run folder
  std::int64_t bytes = 0;
  double seconds = 0.0;
  std::optional<double> best_loss = {};  ///< checkpoint.best only: of its evaluation, if it is the lowest so far
  bool operator==(const CheckpointDone&) const = default;
};
/// Named readings; a full queue keeps only the latest per rank.
struct Gauge {
  std::int64_t rss_bytes = 0;
  std::int64_t device_bytes = 0;
  std::int64_t wire_bytes = 0;   ///< of gradients along the data axis, sent by this rank since it started
  std::int64_t collectives = 0;  ///< issued by this rank since it started
  bool operator==(const Gauge&) const = default;
};
/// Memory and traffic of a rank, counted from its tensors and calls, to compare with the plan's predictions. The last
/// event of a rank covers the whole run.
struct Measured {
  std::int64_t updates = 0;  ///< of full windows, since this rank started
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;      ///< masters and moments
  std::int64_t activation_bytes = 0;     ///< maximum that forwards had allocated for later backwards
  std::vector<std::string> axis;         ///< "data", "tensor", "pipeline", ...; one entry per axis that this rank used
  std::vector<std::int64_t> sent_bytes;  ///< along that axis, during these updates
  std::vector<std::int64_t> calls;
  bool operator==(const Measured&) const = default;
};
/// Progress of a rank; never stored, without a seq.
struct Heartbeat {
  std::string phase;  ///< join, data, forward, backward, reduce, step, evaluate, verify, checkpoint, paused,
                      ///< finish, end
  std::int64_t update = 0;
  std::int64_t micro_step = 0;  ///< in flight
  std::int64_t collective = 0;  ///< sequence number of the last collective begun
  std::string operation;        ///< current operation in words: "backward of micro-step 3, chunk 1"; may be empty
  bool operator==(const Heartbeat&) const = default;
};
/// Phase of the last heartbeat of a rank that another launcher started and that ends in order. The supervisor has no
/// other sign of its end.
inline constexpr std::string_view farewell_phase = "end";
/// A rank's answer to a hold command: it will stop after this micro-step.
struct Holding {
  std::int64_t micro_step = 0;
  bool held = false;                  ///< true once it waits
  StepPhase phase = StepPhase::none;  ///< phase after which it waits inside the micro-step
  bool operator==(const Holding&) const = default;
};
/// Local values of a paused rank, before or after the ranks have reduced them. Values that are not known at that point
/// are NaN.
struct Held {
  std::int64_t update = 0;  ///< the update that ends its window, from 1
  std::int64_t micro_step = 0;
  StepPhase phase = StepPhase::none;
  std::int64_t position = 0;   ///< of the micro-step in its window, from 1; between two, the number completed
  std::int64_t size = 0;       ///< of the window
  double loss = 0.0;           ///< mean of the micro-step
  double weight = 0.0;         ///< factor of the micro-step's loss sum before backward
  double gradient_norm = 0.0;  ///< of the sum
  double factor = 0.0;         ///< factor of the sum in the update, before clipping
  double clip = 0.0;           ///< factor of clipping by norm; 1: no clipping
  double lr = 0.0;             ///< of the window's update
  double next_lr = 0.0;        ///< of the one after it
  std::string parameter;       ///< the parameter whose first elements follow
  std::int64_t elements = 0;   ///< of that parameter, on this rank
  std::vector<double> weights;
  std::vector<double> gradient;  ///< of the sum
  bool operator==(const Held&) const = default;
};
/// The run's state as the supervisor sees it and the studio shows it.
struct StateChanged {
  std::string state;   ///< to_string(RunState)
  std::string detail;  ///< one sentence, for example "after micro-step 2 of 4, update 17"
  std::int64_t micro_step = 0;
  std::int64_t update = 0;
  StepPhase phase = StepPhase::none;  ///< phase after which it is paused inside a micro-step
  bool operator==(const StateChanged&) const = default;
};
struct Warning {
  std::string class_name;  ///< numerics, hang, disk, slow, device, protocol, events, checkpoint, plan,
                           ///< refused, teaching, internal
  std::string message;
  std::string what_to_do;
  std::int64_t update = 0;
  bool operator==(const Warning&) const = default;
};
struct RankFailed {
  std::string class_name;  ///< to_string(ErrorCode)
  std::string message;
  std::string what_to_do;
  std::string phase;  ///< last known
  int signal = 0;     ///< 0: it exited
  int exit_status = 0;
  std::string log_tail;
  std::int64_t update = 0;
  std::int64_t micro_step = 0;
  bool operator==(const RankFailed&) const = default;
};
struct RunFinished {
  std::string outcome;  ///< finished, stopped, failed
  std::int64_t updates = 0;
  double loss = 0.0;
  std::string weights_sha256;
  std::string reason;  ///< why, unless it is "finished" at the planned end
  int exit_status = 0;
  double seconds = 0.0;
  bool operator==(const RunFinished&) const = default;
};
/// A kind that this version does not know, kept unchanged.
struct UnknownEvent {
  std::string kind;
  std::string json;
  bool operator==(const UnknownEvent&) const = default;
};

using EventBody = std::variant<RunStarted, RankReady, MicroSteps, Operations, Sync, Update, Evaluation, ExactnessCheck,
                               StepsChanged, CheckpointDone, Gauge, Measured, Heartbeat, Holding, Held, StateChanged,
                               Warning, RankFailed, RunFinished, UnknownEvent>;

struct RunEvent {
  std::int64_t rank = supervisor_rank;
  std::int64_t seq = -1;     ///< gapless per rank; -1 for kinds without one (heartbeat, holding)
  std::int64_t time_ns = 0;  ///< monotonic, from the run's origin
  EventBody body;
  bool operator==(const RunEvent&) const = default;
};

/// Returns "run_started", "rank_ready", ... as spelled in the file.
std::string_view kind_of(const EventBody& body);
/// Heartbeat and holding are control traffic: not stored, no seq.
bool is_stored(const EventBody& body);

}  // namespace accrue
