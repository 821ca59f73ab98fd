// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/logs/log_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <optional>
#include <string_view>
#include <utility>

#include "accrue/run/data/mapped_file.h"
#include "foreign_file.h"
#include "json_log.h"
#include "log_text.h"
#include "megatron_log.h"
#include "mlflow_log.h"
#include "posix_file.h"
#include "table_log.h"
#include "tensorboard_log.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t max_text_bytes = std::size_t{256} << 20;
constexpr std::size_t max_json_bytes = std::size_t{64} << 20;  // its values take much more memory than its text
constexpr const char* kinds =
    "What is read: event files of TensorBoard and folders of them, tables (csv; also charts of W&B), JSON lines "
    "(MMEngine's scalars.json), the HF Trainer's trainer_state.json, what Megatron-LM prints, metric files of MLflow.";

tl::unexpected<Error> unknown_kind(const fs::path& path, const std::string& what) {
  return fail(ErrorCode::config, what, path.string(), kinds);
}

Result<LogText> read_text(const fs::path& file) {
  std::error_code error;
  if (const auto size = fs::file_size(file, error); !error && size > max_text_bytes)
    return fail(ErrorCode::config, "is larger than 256 MiB, and a text is read as a whole", file.string(),
                "Thin it out first.");
  auto bytes = read_file(file, max_text_bytes);
  if (!bytes) return tl::unexpected(bytes.error());
  return log_text(std::move(*bytes), file.string());
}

std::vector<RunLog> alone(RunLog&& log) {
  std::vector<RunLog> logs;
  logs.push_back(std::move(log));
  return logs;
}

double seconds_of(const fs::path& file) {
  struct stat facts {};
  return ::stat(file.c_str(), &facts) == 0 ? static_cast<double>(facts.st_mtime) : 0.0;
}

tl::unexpected<Error> step_given(const fs::path& path, const std::string& step) {
  return fail(ErrorCode::config, "says its steps itself: there is no column \"" + step + "\" to take them from",
              path.string(), "Leave out --step.");
}

Result<std::vector<RunLog>> read_text_log(const fs::path& file, const LogRequest& request) {
  auto decoded = read_text(file);
  if (!decoded) return tl::unexpected(decoded.error());
  const std::string_view text = decoded->text;
  const std::string name = file.string();
  const double seconds = seconds_of(file);
  if (!looks_like_text(text)) return unknown_kind(file, "is no log of a kind that is read");
  const auto read = [&]() -> Result<std::vector<RunLog>> {
    if (looks_like_json(text) && text.size() > max_json_bytes)
      return fail(ErrorCode::config, "is larger than 64 MiB, and JSON is read as a whole", name, "Thin it out first.");
    if (looks_like_json(text)) return parse_json_log(text, name, seconds, request).map(alone);
    const bool is_metric = looks_like_mlflow_metric(text);
    if (is_metric || looks_like_megatron_log(text)) {
      if (!request.step.empty()) return step_given(file, request.step);
      if (!is_metric) return parse_megatron_log(text, name, seconds, request.go_on).map(alone);
      RunLog log{.word = "metric"};
      if (auto done = read_mlflow_metric(text, name, file.filename().string(), log); !done)
        return tl::unexpected(done.error());
      return alone(std::move(log));
    }
    if (!text.empty() && !looks_like_table(text))
      return unknown_kind(file, "is a text, but no log of a kind that is read");
    return parse_table_log(text, name, seconds, request);
  };
  auto logs = read();
  if (logs)
    for (RunLog& log : *logs)
      log.problems.insert(log.problems.begin(), decoded->problems.begin(), decoded->problems.end());
  return logs;
}

Result<std::vector<RunLog>> read_metrics(const fs::path& folder, const std::function<bool()>& go_on) {
  RunLog log{.word = "metric"};
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_given_up(go_on)) return given_up();
    if (!at->is_regular_file(error) || at->path().filename().string().starts_with('.')) continue;
    const auto decoded = read_text(at->path());
    if (!decoded) return tl::unexpected(decoded.error());
    if (decoded->text.empty()) continue;
    log.problems.insert(log.problems.end(), decoded->problems.begin(), decoded->problems.end());
    const std::string metric = as_utf8(at->path().lexically_relative(folder).string());
    if (auto read = read_mlflow_metric(decoded->text, at->path().string(), metric, log); !read)
      return tl::unexpected(read.error());
  }
  if (error) return disk_error(folder, "cannot be read", error.value());
  if (log.scalars.empty()) return fail(ErrorCode::config, "holds no metric", folder.string());
  return alone(std::move(log));
}

Result<std::vector<RunLog>> read_folder(const fs::path& folder, const LogRequest& request) {
  std::error_code error;
  if (fs::exists(folder / "trainer_state.json", error)) return read_text_log(folder / "trainer_state.json", request);
  if (!request.step.empty()) return step_given(folder, request.step);
  if (const fs::path metrics = mlflow_metrics_in(folder); !metrics.empty()) return read_metrics(metrics, request.go_on);
  return read_tensorboard(folder, request.go_on);
}

}  // namespace

Result<std::vector<RunLog>> read_logs(const fs::path& path, const LogRequest& request) {
  std::error_code error;
  if (!fs::exists(path, error)) return fail(ErrorCode::config, "does not exist", path.string(), "Check the path.");
  if (fs::is_directory(path, error)) return read_folder(path, request);
  if (fs::file_size(path, error) == 0 && !error) return fail(ErrorCode::config, "is empty", path.string());
  bool is_log_of_events = false;
  {
    const auto mapped = MappedFile::open(path);
    if (!mapped) return fail(ErrorCode::disk, mapped.error().message, path.string(), mapped.error().hint);
    const std::string_view bytes(reinterpret_cast<const char*>(mapped->data()),
                                 static_cast<std::size_t>(mapped->size()));
    if (const auto foreign = foreign_file(bytes, path))
      return fail(ErrorCode::config, fmt::format("this is no log: it is {}", foreign->what), path.string(),
                  foreign->way);
    is_log_of_events = looks_like_events(bytes) || (is_event_file(path) && !looks_like_text(bytes));
  }
  if (!is_log_of_events) return read_text_log(path, request);
  if (!request.step.empty()) return step_given(path, request.step);
  return read_tensorboard(path, request.go_on);
}

}  // namespace accrue
