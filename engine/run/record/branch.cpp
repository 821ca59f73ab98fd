// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/branch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/facts/indexed_corpus.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/record/best_checkpoint.h"
#include "accrue/run/record/compare.h"
#include "indexed_requests.h"
#include "posix_file.h"
#include "run_folder.h"
#include "window_length.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

/// A key that a branch must keep, or a section with its dot.
struct KeptKey {
  std::string_view key;
  const char* why;
};
constexpr std::array<KeptKey, 8> kept_keys = {{
    {"model.", "the checkpoint holds the parameters of this model"},
    {"data.", "the place in the epoch is one in these data"},
    {"run.seed", "the order of the samples follows from it"},
    {"optimizer.kind", "the checkpoint holds the state of this optimizer"},
    {"optimizer.loss_scale", "the checkpoint holds the scale, which goes on from there"},
    {"schedule.clock", "the place in the schedule is counted by it"},
    {"accumulation.", "the place in the window is counted by it"},
    {"teaching.", "a lesson is a run of its own"},
}};
constexpr std::array<std::string_view, 5> free_keys = {
    "model.dropout", "accumulation.steps", "accumulation.micro_batch", "data.consumed_samples", "data.cache"};

const char* why_kept(std::string_view key) {
  if (std::ranges::find(free_keys, key) != free_keys.end()) return nullptr;
  for (const KeptKey& kept : kept_keys)
    if (key == kept.key || (kept.key.ends_with('.') && key.starts_with(kept.key))) return kept.why;
  return nullptr;
}

Finding error(std::string key, std::string message, std::string found, std::string expected) {
  Finding finding{.key = std::move(key), .message = std::move(message), .found = std::move(found)};
  finding.expected = std::move(expected);
  return finding;
}

std::int64_t samples_per_update(const RunSpec& spec) {
  return steps_of(spec.accumulation, spec.parallel.data) * spec.accumulation.micro_batch * spec.parallel.data;
}

/// Megatron-LM's padding makes the table's rows depend on the number of tensor-parallel ranks, and the softmax includes
/// them.
void check_table(const RunSpec& from, const RunSpec& to, std::vector<Finding>& findings) {
  if (!is_transformer(to.model.kind)) return;
  const std::int64_t before = classes_of(from.model, from.parallel.tensor);
  const std::int64_t now = classes_of(to.model, to.parallel.tensor);
  if (before == now) return;
  findings.push_back(
      error("parallel.tensor",
            fmt::format("cannot change so in a branch: model.vocabulary_padding would make the {} rows of the table {}",
                        before, now),
            fmt::format("{}", to.parallel.tensor), fmt::format("{}", from.parallel.tensor)));
}

/// Micro-steps of another size must form the same windows.
void check_samples(const RunSpec& from, const RunSpec& to, std::vector<Finding>& findings) {
  const AccumulationKnobs knobs = resolve_knobs(to);
  const std::int64_t before = samples_per_update(from), now = samples_per_update(to);
  const auto refuse = [&](std::string message) {
    findings.push_back(
        error("accumulation.steps", std::move(message),
              fmt::format("{} x {} x {} samples", to.accumulation.steps, to.accumulation.micro_batch, to.parallel.data),
              fmt::format("{} samples", before)));
  };
  if (now != before) {
    refuse("a branch keeps the samples of an update: accumulation.steps x accumulation.micro_batch x parallel.data");
    const std::int64_t each = to.accumulation.micro_batch * to.parallel.data;
    if (before % each == 0) findings.back().fix_value = std::to_string(before / each);
  } else if (knobs.group_length != GroupLength::fixed && knobs.group_length != GroupLength::global_batch) {
    refuse("windows of changing length have no place that other micro-steps could be counted to");
  } else if (!follows_updates(knobs.schedule_clock)) {
    refuse("the schedule of this dialect counts micro-steps, which would become others");
  } else if (knobs.schedule_clock == ScheduleClock::update_times_world && from.parallel.data != to.parallel.data) {
    findings.push_back(error("parallel.data",
                             "cannot change in a branch: an update moves the schedule of this dialect by so many ticks",
                             fmt::format("{}", to.parallel.data), fmt::format("{}", from.parallel.data)));
  }
}

struct DataPlace {
  std::int64_t epoch = 0;
  std::int64_t epoch_samples = 0;  ///< consumed in the epoch
  std::int64_t samples = 0;        ///< in all
  bool operator==(const DataPlace&) const = default;
};

WindowPosition position_after(const WindowShape& shape, std::int64_t updates) {
  AccumulationWindow window(shape);
  window.pass_updates(updates);
  return window.position();
}

/// Data place of the micro-step after `updates` updates, even if the run ends there.
DataPlace place_after(WindowShape shape, std::int64_t updates) {
  const WindowPosition at = position_after(shape, updates);
  shape.max_epochs.reset();
  shape.max_micro_steps.reset();
  shape.max_iters.reset();
  shape.max_updates = updates + 1;
  AccumulationWindow longer(shape);
  longer.restore(at);
  const auto next = longer.next();
  const std::int64_t epoch = next ? next->epoch : at.epoch(), batch = next ? next->batch : at.batch();
  return {.epoch = epoch, .epoch_samples = batch * shape.samples.each, .samples = at.passed_samples()};
}

std::string words(const DataPlace& place) {
  return fmt::format("epoch {}, {} samples into it, {} in all", place.epoch + 1, place.epoch_samples, place.samples);
}

/// Tails, short batches and uneven ranks may end the same updates at another place.
void check_place(const BranchPoint& from, const RunPlan& plan, std::vector<Finding>& findings) {
  const DataPlace before = place_after(from.window, from.checkpoint.update);
  const DataPlace now = place_after(plan.window, from.checkpoint.update);
  if (before == now) return;
  findings.push_back(error("accumulation.micro_batch",
                           fmt::format("the place in the data after update {} would be another: keep micro_batch, "
                                       "accumulation.steps and parallel.data, or branch at the end of an epoch",
                                       from.checkpoint.update),
                           words(now), words(before)));
}

/// A schedule with an end that is left unchanged is stretched to the run's new length.
void check_rate(const BranchPoint& from, const RunPlan& plan, std::vector<Finding>& findings) {
  LrCurve stretched = from.curve;
  stretched.total = plan.curve.total;
  stretched.warmup = plan.curve.warmup;  // a fraction of the total
  if (plan.spec.schedule.total || stretched != plan.curve) return;
  const std::int64_t position = position_after(from.window, from.checkpoint.update).schedule_position();
  const double before = lr_at(from.curve, position), now = lr_at(plan.curve, position);
  if (before == now) return;
  Finding warning = error("schedule.total",
                          fmt::format("follows the length of the run: at update {} the rate goes from {:.4g} to {:.4g}",
                                      from.checkpoint.update, before, now),
                          fmt::format("{}", plan.curve.total), fmt::format("{}", from.curve.total));
  warning.severity = Severity::warning;
  warning.fix_value = warning.expected;
  findings.push_back(std::move(warning));
}

/// Reason why a run of another length reads other samples from its first update on.
struct OtherOrder {
  std::string why;
  std::int64_t now = 0;  ///< samples that are shuffled together
  std::int64_t before = 0;
};

std::optional<std::int64_t> sentence_samples(const RunSpec& spec, const CorpusSet& set) {
  const auto dataset = IndexedDataset::open(set.prefix);
  const auto request = sentence_request(spec, set);
  if (!dataset || !request) return std::nullopt;
  const auto index = build_sentence_index(*dataset, set.elements, *request);
  return index ? std::optional(index->size()) : std::nullopt;
}

/// A GPT's index shuffles whole passes. So does that of a BERT or a T5, which is built to count them.
std::optional<OtherOrder> other_index(const RunSpec& from, const CorpusSet& first, const RunSpec& to,
                                      const CorpusSet& second) {
  if (is_decoder_only(to.model.kind)) {
    const auto one = gpt_index_shape(first.tokens, gpt_request(from, first));
    const auto other = gpt_index_shape(second.tokens, gpt_request(to, second));
    if (!one || !other || *one == *other) return std::nullopt;
    return OtherOrder{
        fmt::format("index: {} is passed over {} times where it was {}", first.name, other->epochs, one->epochs),
        other->samples, one->samples};
  }
  if (first.requested == second.requested) return std::nullopt;
  const auto one = sentence_samples(from, first), other = sentence_samples(to, second);
  if (!one || !other || *one == *other) return std::nullopt;
  return OtherOrder{fmt::format("index: {} gives {} samples where it gave {}", first.name, *other, *one), *other, *one};
}

std::optional<OtherOrder> other_order(const RunSpec& from, const CorpusSplit& then, const RunSpec& to,
                                      const CorpusSplit& after) {
  for (std::size_t i = 0; i < std::min(then.sets.size(), after.sets.size()); ++i)
    if (auto other = other_index(from, then.sets[i], to, after.sets[i])) return other;
  if (!is_cyclic(to.data) || then.samples == after.samples) return std::nullopt;
  return OtherOrder{fmt::format("shuffle: the cyclic sampler draws from {} samples where it drew from {}",
                                after.samples, then.samples),
                    after.samples, then.samples};
}

/// Indexed data: skipped samples, and an order that depends on the run's length.
void check_index(const BranchPoint& from, const RunPlan& plan, std::vector<Finding>& findings) {
  if (plan.spec.data.kind != DataKind::indexed) return;
  const auto warn = [&findings](const char* key, std::string message, std::int64_t found, std::int64_t expected) {
    findings.push_back(error(key, std::move(message), std::to_string(found), std::to_string(expected)));
    findings.back().severity = Severity::warning;
  };
  const std::int64_t before = consumed_samples_of(from.spec.data, DatasetSplit::train);
  const std::int64_t now = consumed_samples_of(plan.spec.data, DatasetSplit::train);
  if (before != now)
    warn(
        "data.consumed_samples",
        fmt::format("moves the place in the data: after update {} the run had consumed {} samples, and the branch goes "
                    "on as if it were {}",
                    from.checkpoint.update, before + place_after(from.window, from.checkpoint.update).samples,
                    now + place_after(plan.window, from.checkpoint.update).samples),
        now, before);
  const auto then = plan_corpus(from.spec, plan.base_dir), after = plan_corpus(plan.spec, plan.base_dir);
  if (!then || !after) return;
  if (const auto other = other_order(from.spec, then->training, plan.spec, after->training))
    warn("run.updates",
         fmt::format("another length of the run has another {}, and the samples come in another order from here on",
                     other->why),
         other->now, other->before);
}

Result<void> copy_files(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directory(to, error);
  for (fs::directory_iterator at(from, error), end; !error && at != end; at.increment(error)) {
    const fs::path copy = to / at->path().filename();
    fs::copy_file(at->path(), copy, error);
    if (error) return disk_error(copy, "cannot be copied from " + at->path().string(), error.value());
    if (auto synced = sync_path(copy); !synced) return synced;
  }
  if (error) return disk_error(from, "cannot be copied", error.value());
  return sync_path(to);
}

}  // namespace

fs::path BranchPoint::checkpoint_dir() const {
  return run_dir / "checkpoints" / checkpoint_name(checkpoint);
}

Result<BranchPoint> read_branch_point(const fs::path& from) {
  auto dir = absolute_folder(from);
  if (!dir) return tl::unexpected(dir.error());
  BranchPoint point;
  const bool named = dir->parent_path().filename() == "checkpoints";
  point.run_dir = named ? dir->parent_path().parent_path() : *dir;
  if (auto own = check_not_imported(point.run_dir); !own) return tl::unexpected(own.error());
  auto order = read_run_order(point.run_dir / "plan.json");
  std::error_code error;
  if (!order && !fs::exists(point.run_dir / "plan.json", error))
    return fail(ErrorCode::config, "is not a run that can be branched from", point.run_dir.string(),
                "Give the folder that \"accrue-run run\" printed");
  if (!order) return tl::unexpected(order.error());
  point.checkpoint =
      named ? named_checkpoint(point.run_dir, dir->filename().string()) : newest_checkpoint(point.run_dir);
  if (!point.checkpoint.valid() || !fs::exists(point.checkpoint_dir() / "manifest.json", error))
    return fail(ErrorCode::config, named ? "is not a checkpoint of this run" : "the run has no checkpoint yet",
                dir->string(), "Name one of the folders step-N in its checkpoints, or start a new run");
  for (const LengthChange& set : order->plan.window.steps_set)
    if (set.from <= point.checkpoint.update)
      return fail(
          ErrorCode::config,
          fmt::format("N was set to {} after update {}, which no spec of a branch could repeat", set.steps, set.from),
          dir->string(), "Branch from an earlier checkpoint");
  point.run_id = order->run_id;
  point.spec = located_spec(order->plan);
  point.window = order->plan.window;
  point.plugins = order->plugins;
  point.curve = order->plan.curve;
  point.data_fingerprint = order->plan.data.fingerprint;
  point.weights_fingerprint = order->plan.weights_fingerprint;
  if (const auto course = read_course(point.run_dir)) {
    const auto last = course->updates.find(point.checkpoint.update);
    if (last != course->updates.end()) point.last = last->second;
  }
  return point;
}

bool recounts_micro_steps(const RunSpec& from, const RunSpec& to) {
  return from.parallel.data != to.parallel.data || from.accumulation.steps != to.accumulation.steps ||
         from.accumulation.micro_batch != to.accumulation.micro_batch;
}

std::vector<Finding> check_branch(const RunSpec& from, const RunSpec& to) {
  std::vector<Finding> findings;
  for (const SpecDifference& each : diff_specs(from, to))
    if (const char* why = why_kept(each.key))
      findings.push_back(error(each.key, std::string("cannot change in a branch: ") + why, each.right, each.left));
  if ((from.optimizer.momentum > 0) != (to.optimizer.momentum > 0))
    findings.push_back(error("optimizer.momentum", "cannot change in a branch: the checkpoint holds the buffers of it",
                             fmt::format("{}", to.optimizer.momentum), from.optimizer.momentum > 0 ? "above 0" : "0"));
  if (findings.empty()) check_table(from, to, findings);
  if (findings.empty() && recounts_micro_steps(from, to)) check_samples(from, to, findings);
  return findings;
}

std::vector<Finding> check_branch(const BranchPoint& from, const RunPlan& plan) {
  std::vector<Finding> findings = check_branch(from.spec, located_spec(plan));
  // A branch that ends before it begins has no such place; starting it reports that.
  if (!findings.empty() || plan.totals.updates <= from.checkpoint.update) return findings;
  if (from.checkpoint.position == 0 && recounts_micro_steps(from.spec, plan.spec)) check_place(from, plan, findings);
  check_rate(from, plan, findings);
  check_index(from, plan, findings);
  return findings;
}

std::string_view branch_keys_help() {
  return "A branch may change parallel, launch, evaluate, checkpoint; optimizer but its kind and loss_scale; schedule "
         "but its clock; "
         "run but its seed; model.dropout; data.cache and data.consumed_samples; and accumulation.steps and "
         "micro_batch where an update keeps its samples. What a field of [megatron] gives is changed by the field: "
         "megatron.tp_degree, megatron.pp_degree, megatron.train_iters.";
}

Result<void> copy_checkpoint(const BranchPoint& from, const fs::path& run_dir) {
  const fs::path folder = run_dir / "checkpoints";
  const fs::path part = folder / ("." + checkpoint_name(from.checkpoint) + ".part");
  auto done = copy_files(from.checkpoint_dir(), part);
  std::error_code error;
  if (done) {
    fs::rename(part, folder / checkpoint_name(from.checkpoint), error);
    if (error) done = disk_error(folder, "the checkpoint cannot be given its name", error.value());
  }
  if (done) done = sync_path(folder);
  if (!done) fs::remove_all(part, error);
  return done;
}

}  // namespace accrue
