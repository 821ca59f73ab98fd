// SPDX-License-Identifier: Apache-2.0
// Problem: a table of a hundred runs must open at once, though each may have gigabytes of events. Solution:
// summary.json describes a run that ended in order. Otherwise the head and the tail of its events do, and only a file
// whose tail has no update is read in full. A summary or spec that was altered is not used: another file of the folder
// replaces it, and the summary says so.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/sha256.h"
#include "accrue/run/events/event_reader.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_store.h"
#include "json_number.h"
#include "json_seal.h"
#include "json_text.h"
#include "posix_file.h"
#include "run_folder.h"
#include "window_length.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t slice_bytes = 1 << 20;
constexpr int summary_version = 1;

void take(const Json& json, const char* key, std::string& value) {
  if (const auto found = json.find(key); found != json.end() && found->is_string()) value = found->get<std::string>();
}
void take(const Json& json, const char* key, std::int64_t& value) {
  if (const auto found = json.find(key); found != json.end() && found->is_number_integer())
    value = found->get<std::int64_t>();
}
void take(const Json& json, const char* key, double& value) {
  if (const auto found = json.find(key); found != json.end()) value = read_json_number(*found).value_or(value);
}

void take(const Json& json, const char* key, bool& value) {
  if (const auto found = json.find(key); found != json.end() && found->is_boolean()) value = *found;
}

Json parse_object(const std::string& text) {
  Json json = parse_json(text);
  return json.is_object() ? json : Json::object();
}

void take(const Json& json, const char* key, std::vector<PlanFigure>& figures) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return;
  for (const Json& each : *found) {
    if (!each.is_object()) continue;
    PlanFigure& figure = figures.emplace_back();
    take(each, "first_rank", figure.first_rank);
    take(each, "last_rank", figure.last_rank);
    take(each, "figure", figure.figure);
    take(each, "planned", figure.planned);
    take(each, "known", figure.known);
    take(each, "measured", figure.measured);
  }
}

void take(const Json& json, const char* key, std::optional<ExactnessCheck>& check) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) return;
  check.emplace();
  take(*found, "update", check->update);
  take(*found, "relative", check->relative);
  take(*found, "tolerance", check->tolerance);
  take(*found, "verdict", check->verdict);
  take(*found, "reason", check->reason);
  take(*found, "message", check->message);
}

/// Returns false if there is no trustworthy summary.
bool take_summary(const fs::path& dir, RunSummary& summary) {
  std::error_code error;
  if (!fs::exists(dir / "summary.json", error)) return false;
  const auto text = read_file(dir / "summary.json");
  if (!text) {
    summary.problems.push_back("summary.json " + text.error().message + "; events.jsonl is shown instead");
    return false;
  }
  const Json json = parse_object(*text);
  const auto version = json.find("v");
  const Seal seal = version == json.end() ? Seal::broken : seal_of(json);
  if (seal == Seal::broken)
    summary.problems.push_back("summary.json is damaged or was changed; events.jsonl is shown instead");
  if (seal != Seal::whole || *version != summary_version) return false;
  take(json, "run_id", summary.run_id);
  take(json, "name", summary.name);
  take(json, "state", summary.state);
  take(json, "updates", summary.updates);
  take(json, "planned_updates", summary.planned_updates);
  take(json, "loss", summary.loss);
  take(json, "empty_windows", summary.empty_windows);
  take(json, "overflowed_windows", summary.overflowed_windows);
  take(json, "seconds", summary.seconds);
  take(json, "paused_seconds", summary.paused_seconds);
  take(json, "samples", summary.samples);
  take(json, "tokens", summary.tokens);
  take(json, "exactness", summary.exactness);
  take(json, "weights_sha256", summary.weights_sha256);
  take(json, "spec_sha256", summary.spec_sha256);
  take(json, "started_at", summary.started_at);
  take(json, "branched_from", summary.branched_from);
  take(json, "message", summary.message);
  take(json, "plan_check", summary.plan_check);
  return true;
}

/// Facts from the events for a summary.
struct Recorded {
  bool saw_update = false;                    ///< with a loss, if the run has one
  std::map<std::int64_t, Measured> measured;  ///< by rank
};

void take_event(const RunEvent& event, RunSummary& summary, Recorded& found) {
  if (const auto* started = std::get_if<RunStarted>(&event.body)) {
    summary.run_id = started->run;
    summary.spec_sha256 = started->spec_sha256;
    if (summary.started_at.empty()) summary.started_at = started->started_at;
    summary.branched_from = started->branched_from;
    summary.state.clear();
    summary.message.clear();
  } else if (const auto* update = std::get_if<Update>(&event.body)) {
    if (event.rank > 0) return;
    summary.updates = update->update;
    summary.empty_windows = update->empty_windows;
    summary.overflowed_windows = update->overflowed_windows;
    if (update->outcome != StepOutcome::skipped_empty) summary.loss = update->loss;
    found.saw_update |= update->outcome != StepOutcome::skipped_empty || !summary.has_loss();
    summary.samples = update->samples;
    summary.tokens = update->tokens;
    summary.seconds = update->seconds;
  } else if (const auto* measured = std::get_if<Measured>(&event.body)) {
    if (measured->updates > 0) found.measured[event.rank] = *measured;
  } else if (const auto* failed = std::get_if<RankFailed>(&event.body)) {
    summary.message = failed->message;
  } else if (const auto* finished = std::get_if<RunFinished>(&event.body)) {
    summary.state = finished->outcome;
    summary.weights_sha256 = finished->weights_sha256;
    if (!finished->reason.empty()) summary.message = finished->reason;
  }
}

std::string read_slice(int fd, std::int64_t offset, std::int64_t size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto count =
        ::pread(fd, bytes.data() + filled, bytes.size() - filled, offset + static_cast<std::int64_t>(filled));
    if (count <= 0) break;
    filled += static_cast<std::size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

/// Reads the head (start of the run) and the tail (its current state).
Recorded take_ends(const fs::path& file, RunSummary& summary) {
  Recorded found;
  const auto opened = open_regular(file, O_RDONLY);
  if (!opened) {
    summary.problems.push_back("events.jsonl " + opened.error().message);
    return found;
  }
  const int fd = opened->get();
  const auto size = static_cast<std::int64_t>(::lseek(fd, 0, SEEK_END));
  EventReader head;
  for (const auto& event : head.feed(read_slice(fd, 0, std::min<std::int64_t>(size, slice_bytes))))
    take_event(event, summary, found);
  if (size > slice_bytes) {
    found.saw_update = false;
    auto bytes = read_slice(fd, size - slice_bytes, slice_bytes);
    bytes.erase(0, bytes.find('\n') + 1);  // starts inside a line
    EventReader tail;
    for (const auto& event : tail.feed(bytes)) take_event(event, summary, found);
  }
  if (found.saw_update || size <= slice_bytes) return found;
  auto whole = EventFile::open(file);
  if (!whole) return found;
  do {
    for (const auto& event : whole->poll()) take_event(event, summary, found);
  } while (!whole->at_end());
  return found;
}

/// Reads spec.toml, if it is readable and unchanged since the start.
bool take_spec(const fs::path& dir, RunSummary& summary) {
  SpecReading reading = read_spec(dir / "spec.toml");
  if (!reading.ok()) {
    summary.problems.push_back("spec.toml cannot be read, and plan.json is shown instead: " +
                               reading.findings.front().text());
    return false;
  }
  const auto text = read_file(dir / "spec.toml");
  if (text && !summary.spec_sha256.empty() && sha256_hex(*text) != summary.spec_sha256)
    summary.problems.push_back("spec.toml was changed after the run started; plan.json holds what was trained");
  summary.spec = std::move(reading.spec);
  return true;
}

std::optional<RunOrder> recorded_order(const fs::path& dir, RunSummary& summary) {
  std::error_code error;
  if (!fs::exists(dir / "plan.json", error)) return std::nullopt;
  auto order = read_run_order(dir / "plan.json");
  if (order) return std::move(*order);
  summary.problems.push_back(order.error().message);
  return std::nullopt;
}

}  // namespace

std::string run_name(const RunSpec& spec, std::int64_t steps) {
  if (!spec.run.name.empty()) return spec.run.name;
  const auto ranks = spec.parallel.data * spec.parallel.tensor * spec.parallel.pipeline;
  // A library's model has the name in the spec; the kind is meaningless.
  const std::string model =
      spec.megatron.custom_model_provider_function.value_or(std::string(to_name(spec.model.kind)));
  return fmt::format("{} N={} {}", model, steps, counted(ranks, "rank"));
}

std::vector<CheckpointMark> checkpoints_of(const fs::path& dir) {
  std::vector<CheckpointMark> marks;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir / "checkpoints", error)) {
    const CheckpointMark mark = checkpoint_mark(entry.path().filename().string());
    if (mark.valid() && fs::exists(entry.path() / "manifest.json", error)) marks.push_back(mark);
  }
  std::ranges::sort(marks, std::greater());
  return marks;
}

CheckpointMark newest_checkpoint(const fs::path& dir) {
  const auto marks = checkpoints_of(dir);
  return marks.empty() ? CheckpointMark() : marks.front();
}

void name_checkpoints(RunSummary& summary, const RunSpec& spec) {
  const CheckpointMark newest = newest_checkpoint(summary.dir);
  if (newest.valid()) summary.last_checkpoint = checkpoint_name(newest);
  if (spec.checkpoint.best != RunMeasure::none) summary.best = best_checkpoint(summary.dir);
}

Result<fs::path> run_folder_at(const fs::path& folder) {
  auto named = absolute_folder(folder);
  if (!named) return named;
  const fs::path& dir = *named;
  std::error_code error;
  if (!fs::exists(dir, error)) return fail(ErrorCode::config, "does not exist", dir.string(), "Check the path");
  if (!fs::is_directory(dir, error))
    return fail(ErrorCode::config, "is a file, not a run folder", dir.string(),
                "Give the folder that \"accrue-run run\" printed");
  if (!fs::exists(dir / "spec.toml", error) && !fs::exists(dir / "events.jsonl", error))
    return fail(ErrorCode::config, "is not a run folder: it holds neither spec.toml nor events.jsonl", dir.string(),
                "Give the folder that \"accrue-run run\" printed");
  return named;
}

Result<RunSummary> read_run(const fs::path& folder) {
  const auto named = run_folder_at(folder);
  if (!named) return tl::unexpected(named.error());
  const fs::path& dir = *named;
  std::error_code error;
  RunSummary summary;
  summary.dir = dir;
  const bool summarised = take_summary(dir, summary);
  Recorded found;
  if (!summarised) found = take_ends(dir / "events.jsonl", summary);
  std::optional<RunOrder> order;
  const bool has_spec = take_spec(dir, summary);
  // Only the plan has values that were fitted to a host's memory.
  const bool fitted = resolve_knobs(summary.spec).group_length == GroupLength::memory_search;
  if (!summarised || !has_spec || fitted) order = recorded_order(dir, summary);
  if (order && !has_spec) summary.spec = located_spec(order->plan);
  if (order && !summarised) {
    summary.planned_updates = order->plan.totals.updates;
    summary.run_id = order->run_id;
    summary.plan_check = check_plan(order->plan, found.measured);
  }
  if (!order && !summarised)
    summary.planned_updates = summary.spec.run.updates.value_or(0);  // of a loop without a plan
  name_checkpoints(summary, summary.spec);
  const AccumulationSpec& accumulation = summary.spec.accumulation;
  summary.steps = order ? order->plan.window.steps : steps_of(accumulation, summary.spec.parallel.data);
  summary.micro_batch = order ? order->plan.order.micro_batch : accumulation.micro_batch;
  summary.name = run_name(summary.spec, summary.steps);
  summary.imported = fs::exists(dir / import_mark, error);
  if (is_locked(dir))
    summary.state = "running";
  else if (summary.state.empty())
    summary.state = "interrupted";
  return summary;
}

std::vector<std::string> record_problems(const RunSummary& run, const ReadProblems& events, std::int64_t last_update) {
  std::vector<std::string> problems = run.problems;
  ReadProblems found = events;
  if (run.state == "running") found.torn_last_line = false;  // it is being written
  if (const std::string text = to_text(found); !text.empty()) problems.push_back("events.jsonl: " + text);
  if (last_update < run.updates)
    problems.push_back(fmt::format("events.jsonl ends at update {}, the run's summary at {}: events are missing",
                                   last_update, run.updates));
  return problems;
}

bool is_imported(const RunSummary& run) {
  return run.message.starts_with(import_reason);
}

std::vector<RunSummary> list_runs(const fs::path& runs_dir) {
  std::vector<RunSummary> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(runs_dir, error)) {
    if (!entry.is_directory(error)) continue;
    if (auto run = read_run(entry.path())) runs.push_back(std::move(*run));
  }
  std::sort(runs.begin(), runs.end(), [](const RunSummary& a, const RunSummary& b) {
    return a.started_at != b.started_at ? a.started_at > b.started_at : a.dir > b.dir;
  });
  return runs;
}

namespace {

Json json_of(const RunSummary& summary) {
  Json json;
  json["v"] = summary_version;
  json["run_id"] = summary.run_id;
  json["name"] = summary.name;
  json["state"] = summary.state;
  json["updates"] = summary.updates;
  json["planned_updates"] = summary.planned_updates;
  json["loss"] = summary.has_loss() ? json_number(summary.loss) : Json(nullptr);
  json["empty_windows"] = summary.empty_windows;
  json["overflowed_windows"] = summary.overflowed_windows;
  json["seconds"] = json_number(summary.seconds);
  json["paused_seconds"] = json_number(summary.paused_seconds);
  json["samples"] = summary.samples;
  json["tokens"] = summary.tokens;
  if (const auto& check = summary.exactness)
    json["exactness"] = {{"update", check->update},       {"relative", json_number(check->relative)},
                         {"tolerance", check->tolerance}, {"verdict", check->verdict},
                         {"reason", check->reason},       {"message", check->message}};
  json["weights_sha256"] = summary.weights_sha256;
  json["spec_sha256"] = summary.spec_sha256;
  json["last_checkpoint"] = summary.last_checkpoint;
  if (const auto& best = summary.best)
    json["best_checkpoint"] = {{"name", checkpoint_name(best->mark)}, {"loss", json_number(best->loss)}};
  json["started_at"] = summary.started_at;
  json["branched_from"] = summary.branched_from;
  json["message"] = summary.message;
  json["plan_check"] = Json::array();
  for (const PlanFigure& each : summary.plan_check)
    json["plan_check"].push_back({{"first_rank", each.first_rank},
                                  {"last_rank", each.last_rank},
                                  {"figure", each.figure},
                                  {"planned", each.planned},
                                  {"known", each.known},
                                  {"measured", each.measured},
                                  {"deviation_percent", each.deviation_percent()},
                                  {"off", each.off()}});
  return json;
}

}  // namespace

std::string to_json(const RunSummary& summary) {
  return json_text(json_of(summary), 2) + "\n";
}

std::string summary_record(const RunSummary& summary) {
  return sealed_text(json_of(summary));
}

Result<void> complete_record(const RunSummary& summary) {
  const auto lock = RunLock::take(summary.dir);
  if (!lock) return tl::unexpected(lock.error());
  clear_leftovers(summary.dir);
  RunSummary written;
  if (take_summary(summary.dir, written)) return {};
  written = summary;
  written.name = summary.spec.run.name;  // as written by the supervisor: a display name is not recorded
  return write_file(summary.dir / "summary.json", summary_record(written));
}

}  // namespace accrue
