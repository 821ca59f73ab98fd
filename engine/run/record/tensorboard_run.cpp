// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/tensorboard_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "accrue/run/compare.h"
#include "accrue/run/run_store.h"
#include "accrue/run/sha256.h"
#include "accrue/run/spec_io.h"
#include "accrue/run/tensorboard_file.h"
#include "accrue/run/tensorboard_scalars.h"
#include "accrue/run/version.h"
#include "lower_case.h"

namespace accrue {

namespace {

constexpr std::string_view import_reason = "imported from ";

/// Usual names, the likeliest first; compared without regard to case.
constexpr std::string_view loss_names[] = {
    "loss",          "lm loss",       "train/loss",       "loss/train",      "train_loss",
    "training_loss", "training/loss", "train/train_loss", "train_loss_step", "train/loss_step"};
constexpr std::string_view lr_names[] = {"learning-rate", "learning_rate", "lr",           "train/learning_rate",
                                         "train/lr",      "lr/train",      "optimizer/lr", "lr-adamw",
                                         "lr-adam",       "lr-sgd"};
constexpr std::string_view norm_names[] = {"grad-norm", "grad_norm", "train/grad_norm", "train/grad-norm",
                                           "gradient_norm"};
constexpr std::string_view evaluation_names[] = {
    "loss validation", "lm loss validation", "eval/loss",       "val/loss",  "val_loss",   "validation/loss",
    "loss/val",        "loss/validation",    "evaluation_loss", "eval_loss", "valid/loss", "validation_loss"};

/// Of a path that may end in a slash.
std::string last_name(const std::filesystem::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::string found_tag(const TensorboardLog& log, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    for (const auto& [tag, values] : log.scalars)
      if (lowered(tag) == name) return tag;
  return {};
}

std::string tag_list(const TensorboardLog& log) {
  std::string text;
  std::size_t count = 0;
  for (const auto& [tag, values] : log.scalars) {
    if (++count > 12) return text + fmt::format(" and {} more", log.scalars.size() - 12);
    text += (text.empty() ? "" : ", ") + tag;
  }
  return text;
}

std::string utc(double seconds) {
  const auto time = static_cast<std::time_t>(std::isfinite(seconds) ? std::clamp(seconds, 0.0, 4e9) : 0.0);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

/// Seconds since 1970 of "2026-11-23T06:44:11Z"; now for anything else.
double seconds_of(const std::string& utc_time) {
  std::tm parts{};
  if (::strptime(utc_time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return wall_clock_seconds();
  return static_cast<double>(::timegm(&parts));
}

const LoggedScalar* at_step(const TensorboardLog& log, const std::string& tag, std::int64_t step) {
  const auto values = log.scalars.find(tag);
  if (values == log.scalars.end()) return nullptr;
  const auto found = std::ranges::lower_bound(values->second, step, {}, &LoggedScalar::step);
  return found != values->second.end() && found->step == step ? &*found : nullptr;
}

/// How many values of a tag stand at a step that has no loss.
std::int64_t without_loss(const TensorboardLog& log, const ImportTags& tags, const std::string& tag) {
  const auto values = log.scalars.find(tag);
  if (values == log.scalars.end()) return 0;
  return std::ranges::count_if(values->second,
                               [&](const LoggedScalar& each) { return at_step(log, tags.loss, each.step) == nullptr; });
}

/// A file may hold any step: what does not fit is the largest or the smallest number.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}
std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_add_overflow(a, b, &result)) return result;
  return a < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}
std::int64_t steps_between(std::int64_t before, std::int64_t after) {
  std::int64_t result = 0;
  return __builtin_sub_overflow(after, before, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

/// The samples trained on when each loss was logged. Accrue and Megatron-LM log every scalar a second time with the
/// samples as its step; else they follow from the batch size.
class SampleClock {
 public:
  SampleClock(const TensorboardLog& log, const ImportTags& tags) : log_(log), batch_(tags.batch) {
    const auto twins = log.scalars.find(tags.loss + " vs samples");
    const auto losses = log.scalars.find(tags.loss);
    if (twins != log.scalars.end() && twins->second.size() == losses->second.size()) twins_ = &twins->second;
    if (log.scalars.contains("batch-size")) sizes_ = "batch-size";
  }
  bool known() const { return twins_ != nullptr || batch_ > 0 || !sizes_.empty(); }

  std::int64_t at(std::size_t index, std::int64_t step) {
    if (twins_ != nullptr) return (*twins_)[index].step;
    if (batch_ > 0) return product(step, batch_);
    const LoggedScalar* size = sizes_.empty() ? nullptr : at_step(log_, sizes_, step);
    if (size != nullptr && size->value >= 0.0 && size->value < 1e12)
      sum_ = sum(sum_, product(static_cast<std::int64_t>(size->value), steps_between(last_step_, step)));
    last_step_ = step;
    return sum_;
  }

 private:
  const TensorboardLog& log_;
  std::int64_t batch_;
  const std::vector<LoggedScalar>* twins_ = nullptr;
  std::string sizes_;
  std::int64_t sum_ = 0;
  std::int64_t last_step_ = 0;
};

/// Appends events with the times and numbers that the format asks for.
class EventAppender {
 public:
  explicit EventAppender(RunWriter& writer) : writer_(writer) {}
  Result<void> add(double seconds, EventBody body) {
    time_ns_ = std::max(time_ns_, static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e9) * 1e9));
    return writer_.append({.rank = supervisor_rank, .seq = seq_++, .time_ns = time_ns_, .body = std::move(body)});
  }

 private:
  RunWriter& writer_;
  std::int64_t seq_ = 0;
  std::int64_t time_ns_ = 0;
};

Result<RunSummary> write_events(const TensorboardLog& log, const ImportTags& tags, RunWriter& writer, RunSummary run) {
  const std::vector<LoggedScalar>& losses = log.scalars.at(tags.loss);
  const double origin = losses.front().wall_time;
  EventAppender events(writer);
  RunStarted started{.run = run.run_id,
                     .spec_sha256 = run.spec_sha256,
                     .plan_json = "{}",
                     .versions_json = fmt::format(R"({{"accrue":"{}","events":{}}})", version(), event_format_version),
                     .host_json = "{}",
                     .started_at = run.started_at};
  if (auto added = events.add(0.0, std::move(started)); !added) return tl::unexpected(added.error());
  SampleClock clock(log, tags);
  const auto evaluations = log.scalars.find(tags.evaluation);
  const std::vector<LoggedScalar> none;
  std::span<const LoggedScalar> ahead = evaluations == log.scalars.end() ? none : evaluations->second;
  // Each stands behind the last loss that its step or an earlier one has.
  const auto add_evaluations = [&](std::optional<std::int64_t> before) -> Result<void> {
    for (; !ahead.empty() && (!before || ahead.front().step < *before); ahead = ahead.subspan(1)) {
      const LoggedScalar& each = ahead.front();
      const double seconds = std::max(each.wall_time - origin, run.seconds);
      if (auto added = events.add(std::isfinite(seconds) ? seconds : run.seconds,
                                  Evaluation{.update = each.step, .loss = each.value});
          !added)
        return added;
    }
    return {};
  };
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const LoggedScalar& loss = losses[i];
    if (auto added = add_evaluations(loss.step); !added) return tl::unexpected(added.error());
    const LoggedScalar* const lr = at_step(log, tags.lr, loss.step);
    const LoggedScalar* const norm = at_step(log, tags.grad_norm, loss.step);
    const double seconds = std::max(loss.wall_time - origin, 0.0);
    Update update{.update = loss.step,
                  .micro_step = loss.step,
                  .samples = clock.at(i, loss.step),
                  .loss = loss.value,
                  .lr = lr == nullptr ? std::nan("") : lr->value,
                  .grad_norm = norm == nullptr ? std::nan("") : norm->value,
                  .seconds = std::isfinite(seconds) ? seconds : 0.0};
    run.samples = update.samples;
    run.seconds = update.seconds;
    if (auto added = events.add(update.seconds, std::move(update)); !added) return tl::unexpected(added.error());
  }
  if (auto added = add_evaluations({}); !added) return tl::unexpected(added.error());
  run.updates = run.planned_updates = losses.back().step;
  run.loss = losses.back().value;
  RunFinished finished{
      .outcome = "finished", .updates = run.updates, .loss = run.loss, .reason = run.message, .seconds = run.seconds};
  if (auto added = events.add(run.seconds, std::move(finished)); !added) return tl::unexpected(added.error());
  return run;
}

}  // namespace

std::filesystem::path import_place(const std::filesystem::path& runs_dir, const std::filesystem::path& from) {
  const std::string name = "imported-" + last_name(from);
  std::filesystem::path place = runs_dir / name;
  std::error_code error;
  for (int number = 2; std::filesystem::exists(place, error); ++number)
    place = runs_dir / fmt::format("{}-{}", name, number);
  return place;
}

bool is_imported(const RunSummary& run) {
  return run.message.starts_with(import_reason);
}

Result<ScalarsWritten> export_tensorboard(const std::filesystem::path& run_dir, const std::filesystem::path& folder,
                                          const std::function<bool()>& go_on) {
  const auto run = read_run(run_dir);
  if (!run) return tl::unexpected(run.error());
  const auto course = read_course(run->dir);
  if (!course) return tl::unexpected(course.error());
  if (course->updates.empty()) return fail(ErrorCode::config, "the run has no update", run->dir.string());
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().find("tfevents") != std::string::npos)
      return fail(ErrorCode::config, "holds event files already, which TensorBoard would read as the same run",
                  folder.string(), "Give another folder.");
  const double origin = seconds_of(run->started_at);
  auto file = TensorboardFile::create(folder, origin);
  if (!file) return tl::unexpected(file.error());
  const std::string loss = loss_tag(run->spec.model);
  const ParallelSpec& parallel = run->spec.parallel;
  ScalarsWritten written{.file = file->path()};
  std::int64_t samples = 0;
  double seconds = 0.0;
  const auto add = [&](std::int64_t update, const TensorboardScalars& scalars) -> Result<void> {
    if (auto added = file->add(origin + seconds, update, scalars); !added) return added;
    return file->add(origin + seconds, samples, over_samples(scalars));
  };
  // One without an update, as that of weights before the first, stands at the time and samples of the update before it.
  auto evaluation = course->evaluations.begin();
  const auto add_evaluations = [&](std::optional<std::int64_t> before) -> Result<void> {
    for (; evaluation != course->evaluations.end() && (!before || evaluation->first < *before); ++evaluation) {
      if (auto added = add(evaluation->first, scalars_of(loss, evaluation->second)); !added) return added;
      ++written.evaluations;
    }
    return {};
  };
  for (const auto& [number, update] : course->updates) {
    if (go_on && !go_on()) {
      std::filesystem::remove(written.file, error);
      return fail(ErrorCode::cancelled, "the export was given up");
    }
    const UpdateFacts facts{.batch_size = static_cast<double>(update.samples - samples),
                            .world = static_cast<double>(parallel.data * parallel.tensor * parallel.pipeline),
                            .seconds = update.seconds - seconds};
    if (auto added = add_evaluations(number); !added) return tl::unexpected(added.error());
    samples = update.samples;
    seconds = update.seconds;
    if (auto added = add(number, scalars_of(loss, update, facts)); !added) return tl::unexpected(added.error());
    ++written.updates;
  }
  if (auto added = add_evaluations({}); !added) return tl::unexpected(added.error());
  return written;
}

Result<ImportChoice> choose_tags(const TensorboardLog& log, const ImportTags& given) {
  ImportChoice choice{.tags = given};
  for (const std::string* tag : {&given.loss, &given.lr, &given.grad_norm, &given.evaluation})
    if (!tag->empty() && !log.scalars.contains(*tag))
      return fail(ErrorCode::config, "there is no " + log.word + " \"" + *tag + "\" in the log", {},
                  "It has: " + tag_list(log) + ".");
  ImportTags& tags = choice.tags;
  if (tags.loss.empty()) tags.loss = found_tag(log, loss_names);
  if (tags.loss.empty() && log.scalars.size() == 1) tags.loss = log.scalars.begin()->first;
  if (tags.loss.empty())
    return fail(ErrorCode::config, "no " + log.word + " of the log has the usual name of a loss", {},
                "Name the one that is the loss: " + tag_list(log) + ".");
  if (tags.lr.empty()) tags.lr = found_tag(log, lr_names);
  if (tags.grad_norm.empty()) tags.grad_norm = found_tag(log, norm_names);
  if (tags.evaluation.empty()) tags.evaluation = found_tag(log, evaluation_names);
  for (const auto& [tag, values] : log.scalars) {
    const bool used = tag == tags.loss || tag == tags.lr || tag == tags.grad_norm || tag == tags.evaluation;
    if (!used && !tag.ends_with(" vs samples")) choice.ignored.push_back(tag);
  }
  if (tags.lr.empty()) choice.notes.push_back("the log has no learning rate");
  for (const auto& [tag, what] : {std::pair{&tags.lr, "learning rates"}, std::pair{&tags.grad_norm, "gradient norms"}})
    if (const std::int64_t count = without_loss(log, tags, *tag); count > 0)
      choice.notes.push_back(fmt::format("{} of {} {} are left out: no loss was logged at their step", count,
                                         log.scalars.at(*tag).size(), what));
  if (!SampleClock(log, tags).known())
    choice.notes.push_back(
        "the log does not say how many samples an update has: on the samples axis the run stays at 0");
  return choice;
}

Result<ImportChoice> import_tensorboard(const TensorboardLog& log, const std::filesystem::path& from,
                                        const std::filesystem::path& run_dir, const ImportTags& given) {
  auto choice = choose_tags(log, given);
  if (!choice) return choice;
  RunSpec spec;
  spec.run.name = (log.name.empty() ? last_name(from) : log.name) + " (imported)";
  const std::string toml = write_spec(spec);
  auto writer = RunWriter::create(run_dir, toml);
  if (!writer) return tl::unexpected(writer.error());
  RunSummary run{.dir = writer->dir(),
                 .run_id = new_run_id(),
                 .name = spec.run.name,
                 .spec = spec,
                 .state = "finished",
                 .spec_sha256 = sha256_hex(toml),
                 .started_at = utc(log.scalars.at(choice->tags.loss).front().wall_time),
                 .message = std::string(import_reason) + from.string()};
  auto written = write_events(log, choice->tags, *writer, std::move(run));
  if (!written) {
    writer->give_up();
    return tl::unexpected(written.error());
  }
  if (auto done = writer->write_summary(*written); !done) return tl::unexpected(done.error());
  if (auto done = writer->sync(); !done) return tl::unexpected(done.error());
  return choice;
}

}  // namespace accrue
