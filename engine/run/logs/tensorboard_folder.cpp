// SPDX-License-Identifier: Apache-2.0
// Assigns a folder's event files to runs. Keras puts the losses of a run into train/ and validation/, torch's
// add_scalars("loss", ...) into loss_train/ and loss_val/ beside the run's own file, and a folder of many runs has a
// folder for each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "accrue/run/data/mapped_file.h"
#include "foreign_file.h"
#include "log_text.h"
#include "lower_case.h"
#include "scalar_rows.h"
#include "tensorboard_log.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_files = 1000;
constexpr std::size_t most_folders = 10'000;
constexpr int deepest = 3;

enum class Part { all, training, evaluation };

struct NamedPart {
  std::string stem;  ///< of "loss_train": loss
  Part part = Part::all;
};

NamedPart named_part(const std::string& folder) {
  constexpr std::array<std::string_view, 2> training = {"train", "training"};
  constexpr std::array<std::string_view, 7> evaluation = {"validation", "valid", "val", "eval",
                                                          "evaluation", "test",  "dev"};
  const auto split = folder.find_last_of("_-");
  const std::string last = lowered(split == std::string::npos ? folder : folder.substr(split + 1));
  const std::string stem = split == std::string::npos ? std::string() : folder.substr(0, split);
  if (std::ranges::find(training, last) != training.end()) return {stem, Part::training};
  if (std::ranges::find(evaluation, last) != evaluation.end()) return {stem, Part::evaluation};
  return {folder, Part::all};
}

/// In the order of their names, which begin with the time.
std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file(error) && is_event_file(entry.path()) && entry.file_size(error) > 0)
      files.push_back(entry.path());
  std::ranges::sort(files);
  if (files.size() > most_files) files.resize(most_files);
  return files;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.is_symlink(error)) folders.push_back(entry.path());
  std::ranges::sort(folders);
  // Evaluations of a run come from its validation, if there is one.
  std::ranges::stable_partition(folders,
                                [](const fs::path& each) { return !each.filename().string().ends_with("test"); });
  return folders;
}

Result<RunLog> read_files(const std::vector<fs::path>& files, const std::function<bool()>& go_on) {
  TensorboardReader reader;
  std::vector<std::string> others;
  for (const auto& file : files) {
    const auto mapped = MappedFile::open(file);
    if (!mapped) return tl::unexpected(mapped.error());
    const std::string_view bytes(reinterpret_cast<const char*>(mapped->data()),
                                 static_cast<std::size_t>(mapped->size()));
    const auto foreign = foreign_file(bytes, file);
    if (foreign || (!looks_like_events(bytes) && looks_like_text(bytes)))
      others.push_back(fmt::format("{} is {}, not an event file, and is not read", file.filename().string(),
                                   foreign ? foreign->what : "a text"));
    else
      reader.read(bytes, file.filename().string(), go_on);
    if (is_given_up(go_on)) return given_up();
  }
  RunLog log = std::move(reader).log();
  log.problems.insert(log.problems.end(), others.begin(), others.end());
  return log;
}

/// Adds a part's scalars to its run.
void join(RunLog& run, RunLog&& part, Part role) {
  for (auto& [tag, values] : part.scalars) {
    const std::string name = (role == Part::evaluation ? "validation/" : "") + tag;
    if (!run.scalars.try_emplace(name, std::move(values)).second)
      run.problems.push_back("\"" + name + "\" stands in two folders of the run: the second one is not read");
  }
  run.problems.insert(run.problems.end(), part.problems.begin(), part.problems.end());
}

/// Whether no scalar has more than one value: add_hparams writes the results of a run this way, into a folder inside
/// the run's.
bool holds_no_curve(const RunLog& log) {
  return std::ranges::all_of(log.scalars, [](const auto& scalar) { return scalar.second.size() == 1; });
}

/// Whether it is from add_scalars(stem): no tag but that one, which may have had slashes.
bool is_of_tag(const RunLog& log, const std::string& stem) {
  return std::ranges::all_of(log.scalars, [&](const auto& scalar) {
    std::string tag = scalar.first;
    std::ranges::replace(tag, '/', '_');
    return tag == stem;
  });
}

class FolderReader {
 public:
  explicit FolderReader(const std::function<bool()>& go_on) : go_on_(go_on) {}

  /// Adds the runs of a folder with this name. in_run: it is inside the folder of a run.
  Result<void> read(const fs::path& folder, const std::string& name, int depth = 0, bool in_run = false) {
    if (is_given_up(go_on_)) return given_up();
    if (++folders_ > most_folders)
      return fail(ErrorCode::config, "has more than 10,000 folders in it", {}, "Give the folder of the log.");
    auto own = take(event_files(folder));
    if (!own) return tl::unexpected(own.error());
    const bool has_own = !own->scalars.empty();
    std::map<std::string, std::vector<std::pair<Part, RunLog>>> parts;
    std::vector<fs::path> deeper;
    for (const fs::path& each : folders_in(folder)) {
      const auto files = event_files(each);
      const NamedPart named = named_part(each.filename().string());
      if (files.empty() || named.part == Part::all) {
        deeper.push_back(each);
        continue;
      }
      auto part = take(files);
      if (!part) return tl::unexpected(part.error());
      const bool is_own = named.stem.empty() || is_of_tag(*part, named.stem);
      parts[is_own ? std::string() : named.stem].emplace_back(named.part, std::move(*part));
    }
    for (auto& [stem, logs] : parts) {
      RunLog run;
      RunLog& target = stem.empty() ? *own : run;
      const bool trained = (stem.empty() && has_own) ||
                           std::ranges::any_of(logs, [](const auto& log) { return log.first == Part::training; });
      for (auto& [part, log] : logs) join(target, std::move(log), trained ? part : Part::training);
      if (!stem.empty()) add(std::move(run), name.empty() ? stem : name + "/" + stem);
    }
    const bool is_run = !own->scalars.empty();
    if (is_run && in_run && holds_no_curve(*own))
      left_out_.push_back(name);
    else
      add(std::move(*own), name);
    if (depth < deepest)
      for (const fs::path& each : deeper)
        if (auto read_deeper =
                read(each, name.empty() ? each.filename().string() : name + "/" + each.filename().string(), depth + 1,
                     in_run || is_run);
            !read_deeper)
          return read_deeper;
    return {};
  }

  std::vector<RunLog> runs() && {
    if (!left_out_.empty())
      runs_.front().problems.push_back("left out, for they hold single values and lie in the folder of a run: " +
                                       name_list(left_out_));
    return std::move(runs_);
  }
  std::size_t files() const { return files_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  Result<RunLog> take(const std::vector<fs::path>& files) {
    files_ += files.size();
    if (files_ > most_files)
      return fail(ErrorCode::config, "has more than 1,000 event files in its folders", {},
                  "Give the folder of one run.");
    return read_files(files, go_on_);
  }
  void add(RunLog&& run, const std::string& name) {
    if (run.scalars.empty()) {
      problems_.insert(problems_.end(), run.problems.begin(), run.problems.end());
      return;
    }
    run.id = run.name = name;
    runs_.push_back(std::move(run));
  }

  const std::function<bool()>& go_on_;
  std::vector<RunLog> runs_;
  std::vector<std::string> left_out_;  ///< folders inside run folders that are not runs
  std::vector<std::string> problems_;  ///< of files without scalars
  std::size_t files_ = 0;
  std::size_t folders_ = 0;
};

}  // namespace

bool is_event_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.find("tfevents") != std::string::npos && !name.ends_with(".profile-empty") && !name.ends_with(".lock");
}

Result<std::vector<RunLog>> read_tensorboard(const fs::path& path, const std::function<bool()>& go_on) {
  std::error_code error;
  std::vector<RunLog> runs;
  std::vector<std::string> problems;
  if (fs::is_directory(path, error)) {
    FolderReader reader(go_on);
    if (auto read = reader.read(path, {}); !read) {
      if (read.error().where.empty()) read.error().where = path.string();
      return tl::unexpected(read.error());
    }
    problems = reader.problems();
    if (reader.files() == 0)
      return fail(
          ErrorCode::config, "holds no event file of TensorBoard", path.string(),
          "Their names have \"tfevents\" in them. Give the folder that holds them, or the file of another log.");
    runs = std::move(reader).runs();
    if (runs.size() == 1) runs.front().id = runs.front().name = {};
  } else {
    auto log = read_files({path}, go_on);
    if (!log) return tl::unexpected(log.error());
    problems = log->problems;
    if (!log->scalars.empty()) runs.push_back(std::move(*log));
  }
  if (runs.empty())
    return fail(ErrorCode::config, "holds no scalar" + (problems.empty() ? std::string() : ": " + problems.front()),
                path.string(), "Give a log that TensorBoard shows curves of.");
  return runs;
}

}  // namespace accrue
