// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/export/tensorboard_export.h"

#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "accrue/run/record/compare.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/record/tensorboard_file.h"
#include "accrue/run/record/tensorboard_scalars.h"

namespace accrue {

namespace {

/// Seconds since 1970 of "2026-11-23T06:44:11Z"; now for anything else.
double seconds_of(const std::string& utc_time) {
  std::tm parts{};
  if (::strptime(utc_time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return wall_clock_seconds();
  return static_cast<double>(::timegm(&parts));
}

}  // namespace

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
  auto file = TensorboardFile::create_hidden(folder, origin);
  if (!file) return tl::unexpected(file.error());
  const std::string loss = loss_tag(run->spec.model);
  const ParallelSpec& parallel = run->spec.parallel;
  ScalarsWritten written{.file = file->path()};
  std::int64_t samples = 0;
  double seconds = 0.0;
  const bool counts_samples = course->updates.rbegin()->second.samples > 0;  // an imported log may not
  const auto add = [&](std::int64_t update, TensorboardScalars scalars) -> Result<void> {
    if (!counts_samples) std::erase_if(scalars, [](const auto& scalar) { return scalar.first == "batch-size"; });
    if (auto added = file->add(origin + seconds, update, scalars); !added || !counts_samples) return added;
    return file->add(origin + seconds, samples, over_samples(scalars));
  };
  // An evaluation without an update, such as one before the first, gets the time and samples of the update before it.
  auto evaluation = course->evaluations.begin();
  const auto add_evaluations = [&](std::optional<std::int64_t> before) -> Result<void> {
    for (; evaluation != course->evaluations.end() && (!before || evaluation->first < *before); ++evaluation) {
      if (auto added = add(evaluation->first, scalars_of(loss, evaluation->second)); !added) return added;
      ++written.evaluations;
    }
    return {};
  };
  for (const auto& [number, update] : course->updates) {
    if (go_on && !go_on()) return fail(ErrorCode::cancelled, "the export was given up");
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
  if (auto published = file->publish(); !published) return tl::unexpected(published.error());
  return written;
}

}  // namespace accrue
