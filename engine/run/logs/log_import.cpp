// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/logs/log_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "accrue/run/base/sha256.h"
#include "accrue/run/base/version.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_store.h"
#include "log_text.h"
#include "lower_case.h"
#include "posix_file.h"
#include "run_staging.h"
#include "scalar_rows.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

/// Usual names, the likeliest first; case-insensitive.
constexpr std::string_view loss_names[] = {
    "loss",          "lm loss",          "train/loss",      "loss/train",      "train_loss", "training_loss",
    "training/loss", "train/train_loss", "train_loss_step", "train/loss_step", "epoch_loss", "batch_loss"};
constexpr std::string_view lr_names[] = {
    "learning-rate", "learning_rate", "learning rate",       "lr",       "train/learning_rate",
    "train/lr",      "lr/train",      "optimizer/lr",        "lr-adamw", "lr-adam",
    "lr-sgd",        "lr/pg0",        "epoch_learning_rate", "epoch_lr"};
constexpr std::string_view norm_names[] = {"grad-norm",       "grad_norm",       "grad norm",
                                           "train/grad_norm", "train/grad-norm", "gradient_norm"};
constexpr std::string_view evaluation_names[] = {
    "loss validation", "lm loss validation", "eval/loss",       "val/loss",  "val_loss",   "validation/loss",
    "loss/val",        "loss/validation",    "evaluation_loss", "eval_loss", "valid/loss", "validation_loss"};

/// Last name of a path that may end in a slash.
std::string last_name(const fs::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

/// Prefixes of the tag of an evaluation that ends like that of the loss: "validation/epoch_loss".
constexpr std::string_view evaluation_folders[] = {"validation/", "val/", "valid/", "eval/", "evaluation/", "test/"};

/// Tags of scalars, and of columns that cannot be scalars.
std::vector<std::string> tags_of(const RunLog& log) {
  std::set<std::string> tags;
  for (const auto& [tag, values] : log.scalars)
    if (!tag.ends_with(samples_twin)) tags.insert(tag);
  for (const auto& [tag, error] : log.no_numbers) tags.insert(tag);
  return {tags.begin(), tags.end()};
}

bool has_tag(const RunLog& log, const std::string& tag) {
  return log.scalars.contains(tag) || log.no_numbers.contains(tag);
}

/// Checks that each given tag exists in a log.
Result<void> check_given(const std::vector<RunLog>& logs, const GivenTags& given) {
  std::vector<std::string> tags = given.loss;
  tags.insert(tags.end(), {given.lr, given.grad_norm, given.evaluation});
  for (const std::string& tag : tags) {
    if (tag.empty() || std::ranges::any_of(logs, [&](const RunLog& log) { return has_tag(log, tag); })) continue;
    std::set<std::string> all;
    for (const RunLog& log : logs)
      for (const std::string& each : tags_of(log)) all.insert(each);
    return fail(ErrorCode::config, "there is no " + logs.front().word + " \"" + tag + "\" in the log", {},
                "It has: " + name_list({all.begin(), all.end()}) + ".");
  }
  return {};
}

std::string found_tag(const std::vector<std::string>& tags, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    for (const std::string& tag : tags)
      if (lowered(tag) == name) return tag;
  return {};
}

std::string evaluation_of(const std::vector<std::string>& tags, const std::string& loss) {
  for (const std::string_view folder : evaluation_folders)
    if (std::string tag = std::string(folder) + loss; std::ranges::find(tags, tag) != tags.end()) return tag;
  const std::string named = found_tag(tags, evaluation_names);
  return named == loss ? std::string() : named;
}

std::string utc(double seconds) {
  const auto time = static_cast<std::time_t>(std::isfinite(seconds) ? std::clamp(seconds, 0.0, 4e9) : 0.0);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

const LoggedScalar* at_step(const RunLog& log, const std::string& tag, std::int64_t step) {
  const auto values = log.scalars.find(tag);
  if (values == log.scalars.end()) return nullptr;
  const auto found = std::ranges::lower_bound(values->second, step, {}, &LoggedScalar::step);
  return found != values->second.end() && found->step == step ? &*found : nullptr;
}

/// Number of values of a tag at steps without a loss.
std::int64_t without_loss(const RunLog& log, const ImportTags& tags, const std::string& tag) {
  const auto values = log.scalars.find(tag);
  if (values == log.scalars.end()) return 0;
  return std::ranges::count_if(values->second,
                               [&](const LoggedScalar& each) { return at_step(log, tags.loss, each.step) == nullptr; });
}

/// A file may contain any step: overflow saturates.
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

/// Samples at each loss. Accrue and Megatron-LM log every scalar a second time with the samples as step; otherwise they
/// follow from the batch size.
class SampleClock {
 public:
  SampleClock(const RunLog& log, const ImportTags& tags) : log_(log), batch_(tags.batch) {
    const auto twins = log.scalars.find(tags.loss + std::string(samples_twin));
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
  const RunLog& log_;
  std::int64_t batch_;
  const std::vector<LoggedScalar>* twins_ = nullptr;
  std::string sizes_;
  std::int64_t sum_ = 0;
  std::int64_t last_step_ = 0;
};

/// Appender of events, with the times and numbers that the format requires.
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

Result<RunSummary> write_events(const RunLog& log, const ImportTags& tags, RunWriter& writer, RunSummary run,
                                const std::function<bool()>& go_on) {
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
  // Each comes after the last loss of its step or an earlier one.
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
    if (is_given_up(go_on, static_cast<std::int64_t>(i))) return given_up();
    const LoggedScalar& loss = losses[i];
    if (auto added = add_evaluations(loss.step); !added) return tl::unexpected(added.error());
    const LoggedScalar* const lr = at_step(log, tags.lr, loss.step);
    const LoggedScalar* const norm = at_step(log, tags.grad_norm, loss.step);
    const double seconds = std::max(loss.wall_time - origin, 0.0);
    Update update{.update = loss.step,
                  .micro_step = loss.step,
                  .samples = clock.at(i, loss.step),
                  .loss = loss.value,
                  .lr = lr == nullptr ? std::nullopt : std::optional(lr->value),
                  .grad_norm = norm == nullptr ? std::nullopt : std::optional(norm->value),
                  .seconds = std::isfinite(seconds) ? seconds : 0.0};
    run.samples = update.samples;
    run.seconds = update.seconds;
    if (auto added = events.add(run.seconds, std::move(update)); !added) return tl::unexpected(added.error());
  }
  if (auto added = add_evaluations({}); !added) return tl::unexpected(added.error());
  run.updates = run.planned_updates = losses.back().step;
  run.loss = losses.back().value;
  RunFinished finished{
      .outcome = "finished", .updates = run.updates, .loss = run.loss, .reason = run.message, .seconds = run.seconds};
  if (auto added = events.add(run.seconds, std::move(finished)); !added) return tl::unexpected(added.error());
  return run;
}

/// Makes a run folder of one log.
Result<void> write_run(const RunLog& log, const fs::path& from, const fs::path& run_dir, const ImportTags& tags,
                       const std::function<bool()>& go_on) {
  RunSpec spec;
  spec.run.name = as_utf8((log.name.empty() ? last_name(from) : log.name) + " (imported)");
  const std::string toml = write_spec(spec);
  auto writer = RunWriter::create(run_dir, toml);
  if (!writer) return tl::unexpected(writer.error());
  RunSummary run{.dir = writer->dir(),
                 .run_id = new_run_id(),
                 .name = spec.run.name,
                 .spec = spec,
                 .state = "finished",
                 .spec_sha256 = sha256_hex(toml),
                 .started_at = utc(log.scalars.at(tags.loss).front().wall_time),
                 .message = import_reason + from.string()};
  auto written = write_events(log, tags, *writer, std::move(run), go_on);
  if (!written) return tl::unexpected(written.error());
  if (auto done = writer->write_summary(*written); !done) return done;
  return writer->sync();
}

/// Returns free names in the folder, one for each run: two imports of a log are two runs.
std::vector<std::string> free_names(const fs::path& runs_dir, const fs::path& from, std::size_t count) {
  const std::string wanted = "imported-" + last_name(from);
  std::vector<std::string> names;
  std::error_code error;
  for (int number = 1; names.size() < count; ++number) {
    std::string name = number == 1 ? wanted : fmt::format("{}-{}", wanted, number);
    if (!fs::exists(runs_dir / name, error)) names.push_back(std::move(name));
  }
  return names;
}

/// Free names come after taken ones: renaming from the last one on avoids conflicts.
void rename_staged(const fs::path& folder, std::vector<std::string>& names, std::vector<std::string> to) {
  std::error_code ignored;
  for (std::size_t i = names.size(); i-- > 0;) fs::rename(folder / names[i], folder / to[i], ignored);
  names = std::move(to);
}

}  // namespace

Result<ImportChoice> choose_tags(const RunLog& log, const GivenTags& given) {
  const std::vector<std::string> all = tags_of(log);
  const auto if_there = [&](const std::string& tag) { return has_tag(log, tag) ? tag : std::string(); };
  ImportChoice choice{.tags = {.loss = {},
                               .lr = if_there(given.lr),
                               .grad_norm = if_there(given.grad_norm),
                               .evaluation = if_there(given.evaluation),
                               .batch = given.batch}};
  ImportTags& tags = choice.tags;
  for (const std::string& tag : given.loss)
    if (tags.loss.empty()) tags.loss = if_there(tag);
  if (tags.loss.empty()) tags.loss = found_tag(all, loss_names);
  if (tags.loss.empty() && all.size() == 1) tags.loss = all.front();
  if (tags.loss.empty())
    return fail(ErrorCode::config, "no " + log.word + " of the log has the usual name of a loss", {},
                "Name the one that is the loss: " + name_list(all) + ".");
  if (tags.lr.empty()) tags.lr = found_tag(all, lr_names);
  if (tags.grad_norm.empty()) tags.grad_norm = found_tag(all, norm_names);
  if (tags.evaluation.empty()) tags.evaluation = evaluation_of(all, tags.loss);
  for (const std::string* tag : {&tags.loss, &tags.lr, &tags.grad_norm, &tags.evaluation})
    if (const auto bad = log.no_numbers.find(*tag); bad != log.no_numbers.end()) return tl::unexpected(bad->second);
  for (const std::string& tag : all)
    if (tag != tags.loss && tag != tags.lr && tag != tags.grad_norm && tag != tags.evaluation)
      choice.ignored.push_back(tag);
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

Result<ImportPlace> import_place_of(const fs::path& run_dir) {
  const auto dir = absolute_folder(run_dir);
  if (!dir) return tl::unexpected(dir.error());
  return ImportPlace{dir->parent_path(), dir->filename().string()};
}

Result<std::vector<ImportedRun>> import_logs(std::vector<RunLog> logs, const fs::path& from, const ImportPlace& place,
                                             const GivenTags& given, const std::function<bool()>& go_on) {
  if (!place.name.empty() && logs.size() > 1)
    return fail(ErrorCode::config, fmt::format("holds {} runs, and one folder is named for them", logs.size()),
                from.string(), "Name the folder that their folders go into.");
  if (auto checked = check_given(logs, given); !checked) return tl::unexpected(checked.error());
  std::vector<ImportedRun> imported;
  for (const RunLog& log : logs) {
    auto choice = choose_tags(log, given);
    if (!choice && logs.size() > 1) choice.error().message = fmt::format("run {}: {}", log.id, choice.error().message);
    if (!choice) return tl::unexpected(choice.error());
    imported.push_back({.choice = std::move(*choice), .problems = log.problems});
  }
  const auto runs_dir = absolute_folder(place.runs_dir);
  if (!runs_dir) return tl::unexpected(runs_dir.error());
  std::error_code error;
  if (const fs::path taken = *runs_dir / place.name; !place.name.empty() && fs::exists(taken, error) &&
                                                     !(fs::is_directory(taken, error) && fs::is_empty(taken, error)))
    return fail(ErrorCode::config, "is there already, and not empty", taken.string(),
                "Choose a new or an empty folder.");
  auto staging = RunStaging::make(*runs_dir);
  if (!staging) return tl::unexpected(staging.error());
  auto names = place.name.empty() ? free_names(*runs_dir, from, logs.size()) : std::vector{place.name};
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (auto written = write_run(logs[i], from, staging->dir() / names[i], imported[i].choice.tags, go_on); !written)
      return tl::unexpected(written.error());
  }
  auto taken = staging->take_places(names);
  constexpr int tries = 10;  // another import may have taken a name in between
  for (int i = 1; i < tries && !taken && taken.error().code == ErrorCode::config && place.name.empty(); ++i) {
    rename_staged(staging->dir(), names, free_names(*runs_dir, from, logs.size()));
    taken = staging->take_places(names);
  }
  if (!taken) return tl::unexpected(taken.error());
  for (std::size_t i = 0; i < names.size(); ++i) imported[i].dir = *runs_dir / names[i];
  return imported;
}

}  // namespace accrue
