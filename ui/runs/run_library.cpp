// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_library.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QFileSystemWatcher>
#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/preflight/run_order.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "series/event_pump.h"

namespace accrue::ui {

namespace {

QString canonical(const QString& folder) {
  const QString path = QFileInfo(folder).canonicalFilePath();
  return path.isEmpty() ? QDir::cleanPath(QFileInfo(folder).absoluteFilePath()) : path;
}

std::optional<RunPlan> readPlan(const std::filesystem::path& dir) {
  std::ifstream file(dir / "plan.json", std::ios::binary);
  if (!file) return std::nullopt;
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  auto order = run_order_from_json(json);
  if (!order) return std::nullopt;
  return std::move(order->plan);
}

/// The next events of a file, in a block large enough to hide the reading time; empty at its end.
std::vector<RunEvent> nextBlock(EventFile& file) {
  std::vector<RunEvent> events;
  do events = file.poll();
  while (events.empty() && !file.at_end());
  return events;
}

struct Block {
  std::vector<RunEvent> events;
  std::optional<RunSummary> summary;  ///< with the last block, read after it: the run may have ended meanwhile
};

Block readBlock(EventFile& file, const std::filesystem::path& dir) {
  Block block{nextBlock(file), std::nullopt};
  if (!file.at_end()) return block;
  if (auto summary = read_run(dir)) block.summary = std::move(*summary);
  // If it ended just now, its last events came after those above and before the summary.
  std::vector<RunEvent> since = nextBlock(file);
  std::ranges::move(since, std::back_inserter(block.events));
  return block;
}

}  // namespace

struct RunLibrary::Listing {
  std::vector<RunSummary> runs;
};

struct RunLibrary::History {
  QString folder;
  Result<RunSummary> summary;
  std::optional<RunPlan> plan;
  std::shared_ptr<EventFile> file;  ///< null once read to its end
  std::vector<RunEvent> events;     ///< one block
  std::vector<RunEvent> next;       ///< the next block; empty while it is being read
  bool reading = false;
  QString problem;
  std::size_t fed = 0;  ///< of the first block
  RunSeries* run = nullptr;
};

RunLibrary::RunLibrary(QString runs_dir, QObject* parent)
    : QObject(parent), runs_dir_(std::move(runs_dir)), watcher_(new QFileSystemWatcher(this)) {
  feed_timer_.setInterval(EventPump::frame);
  connect(&feed_timer_, &QTimer::timeout, this, &RunLibrary::feedSlice);
  refresh_delay_.setSingleShot(true);
  refresh_delay_.setInterval(500);
  connect(&refresh_delay_, &QTimer::timeout, this, &RunLibrary::refresh);
  watch_timer_.setInterval(watch_interval);
  connect(&watch_timer_, &QTimer::timeout, this, &RunLibrary::watchLive);
  connect(watcher_, &QFileSystemWatcher::directoryChanged, &refresh_delay_, qOverload<>(&QTimer::start));
}

RunLibrary::~RunLibrary() = default;

void RunLibrary::refresh() {
  if (listing_) return;
  listing_ = true;
  watchFolder();
  jobs_.run(
      [dir = std::filesystem::path(runs_dir_.toStdString())] {
        Listing listing{list_runs(dir)};
        std::sort(listing.runs.begin(), listing.runs.end(),
                  [](const RunSummary& left, const RunSummary& right) { return left.started_at > right.started_at; });
        if (listing.runs.size() > listed_runs) listing.runs.resize(listed_runs);
        return listing;
      },
      [this](const Listing& listing) { takeListing(listing); });
}

/// A first session begins without a runs folder: then the nearest existing parent is watched.
void RunLibrary::watchFolder() {
  QString nearest = QDir::cleanPath(QFileInfo(runs_dir_).absoluteFilePath());
  while (!QFileInfo(nearest).isDir() && nearest != QDir::rootPath()) nearest = QFileInfo(nearest).absolutePath();
  const QStringList watched = watcher_->directories();
  if (watched == QStringList{nearest}) return;
  if (!watched.isEmpty()) watcher_->removePaths(watched);
  watcher_->addPath(nearest);
}

void RunLibrary::takeListing(const Listing& listing) {
  listing_ = false;
  // Runs elsewhere on disk are in no listing: watchLive() checks them.
  const QStringList before = std::exchange(live_elsewhere_, {});
  interrupted_.clear();
  QSet<QString> listed;
  for (const RunSummary& summary : listing.runs) {
    listed.insert(canonical(QString::fromStdString(summary.dir.string())));
    takeSummary(summary);
  }
  for (const QString& folder : before)
    if (!listed.contains(folder)) noteLive(folder);
  Q_EMIT refreshed();
}

void RunLibrary::takeSummary(RunSummary summary) {
  const QString folder = canonical(QString::fromStdString(summary.dir.string()));
  summary.dir = folder.toStdString();
  takeFacts(folder, summary);
  RunSeries* run = by_folder_.value(folder);
  if (run && hosted_.contains(run) && run->isLive()) return;
  if (summary.state == "interrupted" && !summary.imported && !interrupted_.contains(folder))
    interrupted_.append(folder);
  if (summary.state == "running") noteLive(folder);
  const bool ended = run && run->isLive() && summary.state != "running";
  const bool reread = ended && loaded_.contains(run);
  if (run && run->hasEvents()) {
    // A run that was read while it trained lacks its end; if it is still being read, the next check sees that.
    if (!reread) {
      if (ended) noteLive(folder);
      return;
    }
    forget(run);
  }
  if (!run) run = addRun(QString::fromStdString(summary.run_id), folder, QString::fromStdString(summary.started_at));
  run->setSummary(summary);
  if (reread) load(run);
}

/// Takes facts from a folder's summary that do not belong to its series.
void RunLibrary::takeFacts(const QString& folder, const RunSummary& summary) {
  checkpoints_.insert(folder, QString::fromStdString(summary.last_checkpoint));
  if (summary.imported)
    imported_.insert(folder);
  else
    imported_.remove(folder);
}

void RunLibrary::noteLive(const QString& folder) {
  if (!live_elsewhere_.contains(folder)) live_elsewhere_.append(folder);
  if (!watch_timer_.isActive()) watch_timer_.start();
}

void RunLibrary::watchLive() {
  if (live_elsewhere_.isEmpty()) watch_timer_.stop();
  if (live_elsewhere_.isEmpty() || watching_ || listing_) return;
  watching_ = true;
  const QStringList folders = live_elsewhere_;
  jobs_.run(
      [folders] {
        Listing listing;
        for (const QString& folder : folders)
          if (auto summary = read_run(folder.toStdString())) listing.runs.push_back(std::move(*summary));
        return listing;
      },
      [this, folders](const Listing& listing) {
        watching_ = false;
        const QStringList before = live_elsewhere_;
        for (const QString& folder : folders) live_elsewhere_.removeAll(folder);
        for (const RunSummary& summary : listing.runs) takeSummary(summary);
        if (live_elsewhere_ != before) Q_EMIT refreshed();
      });
}

void RunLibrary::forget(RunSeries* run) {
  std::erase_if(histories_, [run](const auto& history) { return history->run == run; });
  loading_.remove(run);
  loaded_.remove(run);
  run->clear();
  log_.removeRun(run->id());
}

RunSeries* RunLibrary::addRun(const QString& id, const QString& folder, const QString& startedAt) {
  auto* run = new RunSeries(id.isEmpty() ? QFileInfo(folder).fileName() : id, -1, this);
  run->setFolder(folder);
  run->setStartedAt(startedAt);
  by_folder_.insert(folder, run);
  table_.addRun(run);
  return run;
}

RunSeries* RunLibrary::find(const QString& folder) const {
  return by_folder_.value(canonical(folder));
}

void RunLibrary::takeOut(RunSeries* run) {
  const QString folder = run->folder();
  if (by_folder_.value(folder) != run) return;
  run->setShown(Shown::no);
  by_folder_.remove(folder);
  interrupted_.removeAll(folder);
  live_elsewhere_.removeAll(folder);
  checkpoints_.remove(folder);
  imported_.remove(folder);
  table_.removeRun(run);
  Q_EMIT refreshed();
}

void RunLibrary::putBack(RunSeries* run) {
  // The folder may have been listed as a new run meanwhile.
  if (by_folder_.contains(run->folder())) return;
  by_folder_.insert(run->folder(), run);
  table_.addRun(run);
  refresh();
}

RunSeries* RunLibrary::addLive(const QString& folder, const std::optional<RunPlan>& plan, Past past) {
  const QString path = canonical(folder);
  RunSeries* run = by_folder_.value(path);
  if (!run) run = addRun(QString(), path, QDateTime::currentDateTimeUtc().toString(Qt::ISODateWithMs));
  if (past == Past::forget) forget(run);
  live_elsewhere_.removeAll(path);
  if (const auto known = plan ? plan : readPlan(path.toStdString())) run->setPlan(*known);
  hosted_.insert(run);
  loading_.insert(run);
  return run;
}

void RunLibrary::open(const QString& folder) {
  const QString path = canonical(folder);
  if (RunSeries* run = by_folder_.value(path); run && loading_.contains(run)) {
    Q_EMIT opened(run);
    return;
  }
  asked_.insert(path);
  read(path);
}

void RunLibrary::read(const QString& path) {
  if (reading_.contains(path)) return;
  reading_.insert(path);
  if (RunSeries* run = by_folder_.value(path)) loading_.insert(run);
  jobs_.run(
      [path] {
        const std::filesystem::path dir = path.toStdString();
        auto history = std::make_unique<History>();
        history->folder = path;
        history->summary = read_run(dir);
        history->plan = readPlan(dir);
        const std::filesystem::path events = dir / "events.jsonl";
        auto file = EventFile::open(events);
        if (!file) {
          history->problem = QString::fromStdString(file.error().text());
          return history;
        }
        history->file = std::make_shared<EventFile>(std::move(*file));
        Block block = readBlock(*history->file, dir);
        history->events = std::move(block.events);
        if (block.summary) history->summary = std::move(*block.summary);
        const auto readable = check_readable(history->file->problems(), !history->events.empty(), events);
        if (!readable) history->problem = QString::fromStdString(readable.error().text());
        if (history->file->at_end()) history->file.reset();
        return history;
      },
      [this](std::unique_ptr<History> history) { takeHistory(std::move(*history)); });
}

void RunLibrary::load(RunSeries* run) {
  if (!run || run->folder().isEmpty() || loading_.contains(run)) return;
  read(canonical(run->folder()));
}

bool RunLibrary::isLoaded(const RunSeries* run) const {
  return hosted_.contains(run) || loaded_.contains(run);
}

void RunLibrary::takeHistory(History history) {
  RunSeries* run = by_folder_.value(history.folder);
  reading_.remove(history.folder);
  const bool asked = asked_.remove(history.folder);
  if (!history.summary && history.events.empty()) {
    loading_.remove(run);
    const QString why =
        history.problem.isEmpty() ? QString::fromStdString(history.summary.error().text()) : history.problem;
    Q_EMIT openFailed(history.folder, why);
    return;
  }
  if (asked && !history.problem.isEmpty()) Q_EMIT openFailed(history.folder, history.problem);  // its summary is shown
  if (run && hosted_.contains(run)) {
    if (asked) Q_EMIT opened(run);
    return;
  }
  if (!run) {
    const RunSummary summary = history.summary ? *history.summary : RunSummary{};
    run = addRun(QString::fromStdString(summary.run_id), history.folder, QString::fromStdString(summary.started_at));
  }
  loading_.insert(run);
  if (history.summary) {
    history.summary->dir = history.folder.toStdString();
    run->setSummary(*history.summary);
    takeFacts(history.folder, *history.summary);
  }
  if (history.plan) run->setPlan(*history.plan);
  history.run = run;
  const bool live = history.summary && history.summary->state == "running";
  histories_.push_back(std::make_unique<History>(std::move(history)));
  feed_timer_.start();
  if (asked) Q_EMIT opened(run);
  if (!live) return;
  noteLive(run->folder());
  Q_EMIT liveFound(run);
}

void RunLibrary::feedSlice() {
  if (histories_.empty()) {
    feed_timer_.stop();
    return;
  }
  History& history = *histories_.front();
  if (hosted_.contains(history.run)) {
    // Its events now come from its host.
    histories_.pop_front();
    return;
  }
  if (history.fed == history.events.size()) {
    history.events = std::exchange(history.next, {});
    history.fed = 0;
  }
  if (history.next.empty()) readOn(history);
  if (history.events.empty() && history.file) return;
  const std::size_t end = std::min(history.fed + slice, history.events.size());
  const std::vector<RunEvent> events(
      std::make_move_iterator(history.events.begin() + static_cast<std::ptrdiff_t>(history.fed)),
      std::make_move_iterator(history.events.begin() + static_cast<std::ptrdiff_t>(end)));
  history.fed = end;
  append(history.run, events);
  if (end < history.events.size() || !history.next.empty() || history.file) return;
  RunSeries* run = history.run;
  if (history.summary) {
    run->setSummary(*history.summary);
    // The last event of a run whose supervisor died says "running", but no process holds its folder.
    if (history.summary->state == "interrupted")
      run->setState(RunState::failed, tr("interrupted after update %1").arg(run->last().update));
  }
  loaded_.insert(run);
  histories_.pop_front();
  Q_EMIT loaded(run);
}

/// Reads one block ahead of the delivered one, so that a long history is never in memory as a whole.
void RunLibrary::readOn(History& history) {
  if (!history.file || history.reading) return;
  history.reading = true;
  jobs_.run([file = history.file,
             dir = std::filesystem::path(history.folder.toStdString())] { return readBlock(*file, dir); },
            [this, file = history.file](Block block) {
              const auto found = std::ranges::find(histories_, file, [](const auto& each) { return each->file; });
              if (found == histories_.end()) return;  // abandoned meanwhile
              History& read = **found;
              read.reading = false;
              read.next = std::move(block.events);
              if (file->at_end()) read.file.reset();
              if (!block.summary) return;
              block.summary->dir = read.folder.toStdString();
              takeFacts(read.folder, *block.summary);
              read.summary = std::move(*block.summary);
            });
}

void RunLibrary::append(RunSeries* run, const std::vector<RunEvent>& events) {
  run->append(events);
  log_.append(run->id(), events);
}

void RunLibrary::assignColors(const QList<RunSeries*>& shown) {
  shown_.intersect(QSet<const RunSeries*>(shown.begin(), shown.end()));
  for (RunSeries* run : shown) {
    if (shown_.contains(run)) continue;
    const bool taken =
        std::ranges::any_of(shown_, [run](const RunSeries* other) { return other->colorIndex() == run->colorIndex(); });
    if (run->colorIndex() < 0 || taken) run->setColorIndex(freeColor());
    shown_.insert(run);
  }
}

/// Returns an index that no shown run has; that of a hidden run rather than another dash.
int RunLibrary::freeColor() const {
  std::map<int, int> held;
  std::array<int, RunSeries::colors> uses{};
  for (const RunSeries* run : table_.runs()) {
    if (run->colorIndex() < 0) continue;
    const bool shown = shown_.contains(run);
    held[run->colorIndex()] += shown ? 0 : 1;
    if (shown) ++uses[static_cast<std::size_t>(run->colorIndex() % RunSeries::colors)];
  }
  const auto fewest = std::ranges::min(uses);
  // The indices of a colour are solid, then one dash after another: one for each shown run of it and a free one.
  for (int dash = 0;; ++dash) {
    int best = -1;
    for (int color = 0; color < RunSeries::colors; ++color) {
      const int index = dash * RunSeries::colors + color;
      const bool taken =
          std::ranges::any_of(shown_, [index](const RunSeries* run) { return run->colorIndex() == index; });
      if (uses[static_cast<std::size_t>(color)] > fewest || taken) continue;
      if (best < 0 || held[index] < held[best]) best = index;
    }
    if (best >= 0) return best;
  }
}

std::int64_t RunLibrary::resumeUpdate(const QString& folder) const {
  return std::max<qint64>(0, checkpoint_mark(checkpoints_.value(canonical(folder)).toStdString()).update);
}

bool RunLibrary::isImported(const QString& folder) const {
  return imported_.contains(canonical(folder));
}

}  // namespace accrue::ui
