// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_library.h"

#include <QDir>
#include <QFileInfo>
#include <QFileSystemWatcher>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "accrue/run/event_reader.h"
#include "accrue/run/run_store.h"
#include "bridge/event_pump.h"

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

}  // namespace

struct RunLibrary::Listing {
  std::vector<RunSummary> runs;
};

struct RunLibrary::History {
  QString folder;
  bool asked_to_open = false;
  Result<RunSummary> summary;
  std::optional<RunPlan> plan;
  std::vector<RunEvent> events;
  QString problem;
  std::size_t fed = 0;
  RunSeries* run = nullptr;
};

RunLibrary::RunLibrary(QString runs_dir, QObject* parent)
    : QObject(parent), runs_dir_(std::move(runs_dir)), watcher_(new QFileSystemWatcher(this)) {
  feed_timer_.setInterval(EventPump::frame);
  connect(&feed_timer_, &QTimer::timeout, this, &RunLibrary::feedSlice);
  refresh_delay_.setSingleShot(true);
  refresh_delay_.setInterval(500);
  connect(&refresh_delay_, &QTimer::timeout, this, &RunLibrary::refresh);
  connect(watcher_, &QFileSystemWatcher::directoryChanged, &refresh_delay_, qOverload<>(&QTimer::start));
}

RunLibrary::~RunLibrary() = default;

void RunLibrary::refresh() {
  if (listing_) return;
  listing_ = true;
  if (watcher_->directories().isEmpty() && QFileInfo(runs_dir_).isDir()) watcher_->addPath(runs_dir_);
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

void RunLibrary::takeListing(const Listing& listing) {
  listing_ = false;
  interrupted_.clear();
  const QString listed = canonical(runs_dir_);  // what lies elsewhere was opened by hand, and is not in the listing
  live_elsewhere_.removeIf([&](const QString& folder) { return QFileInfo(folder).absolutePath() == listed; });
  for (const RunSummary& summary : listing.runs) {
    const QString folder = canonical(QString::fromStdString(summary.dir.string()));
    checkpoints_.insert(folder, QString::fromStdString(summary.last_checkpoint));
    RunSeries* run = by_folder_.value(folder);
    if (run && hosted_.contains(run) && run->isLive()) continue;
    if (summary.state == "interrupted") interrupted_.append(folder);
    if (summary.state == "running") live_elsewhere_.append(folder);
    if (run && run->hasEvents() && !(run->isLive() && summary.state != "running")) continue;
    if (run && run->hasEvents()) {  // it was read while it trained elsewhere, and has ended since
      run->clear();
      loaded_.remove(run);
      loading_.remove(run);
      load(run);
    }
    if (!run) run = addRun(QString::fromStdString(summary.run_id), folder);
    run->setSummary(summary);
  }
  Q_EMIT refreshed();
}

RunSeries* RunLibrary::addRun(const QString& id, const QString& folder) {
  auto* run = new RunSeries(id.isEmpty() ? QFileInfo(folder).fileName() : id, -1, this);
  run->setFolder(folder);
  by_folder_.insert(folder, run);
  table_.addRun(run);
  return run;
}

RunSeries* RunLibrary::find(const QString& folder) const {
  return by_folder_.value(canonical(folder));
}

RunSeries* RunLibrary::addLive(const QString& folder, const std::optional<RunPlan>& plan, Past past) {
  const QString path = canonical(folder);
  RunSeries* run = by_folder_.value(path);
  if (!run) run = addRun(QString(), path);
  if (past == Past::forget && run->hasEvents()) run->clear();
  if (const auto known = plan ? plan : readPlan(path.toStdString())) run->setPlan(*known);
  hosted_.insert(run);
  loading_.insert(run);
  // What was being read of its folder would come after what it says from now on.
  std::erase_if(histories_, [run](const auto& history) { return history->run == run; });
  return run;
}

void RunLibrary::open(const QString& folder) {
  const QString path = canonical(folder);
  if (RunSeries* run = by_folder_.value(path); run && loading_.contains(run)) {
    Q_EMIT opened(run);
    return;
  }
  read(path, true);
}

void RunLibrary::read(const QString& path, bool asked_to_open) {
  if (RunSeries* run = by_folder_.value(path)) loading_.insert(run);
  jobs_.run(
      [path, asked_to_open] {
        const std::filesystem::path dir = path.toStdString();
        auto history = std::make_unique<History>();
        history->folder = path;
        history->asked_to_open = asked_to_open;
        history->summary = read_run(dir);
        history->plan = readPlan(dir);
        if (auto read = read_events(dir / "events.jsonl"))
          history->events = std::move(read->events);
        else
          history->problem = QString::fromStdString(read.error().text());
        return history;
      },
      [this](std::unique_ptr<History> history) { takeHistory(std::move(*history)); });
}

void RunLibrary::load(RunSeries* run) {
  if (!run || run->folder().isEmpty() || loading_.contains(run)) return;
  read(run->folder(), false);
}

bool RunLibrary::isLoaded(const RunSeries* run) const {
  return hosted_.contains(run) || loaded_.contains(run);
}

void RunLibrary::takeHistory(History history) {
  RunSeries* run = by_folder_.value(history.folder);
  if (!history.summary && history.events.empty()) {
    loading_.remove(run);
    const QString why =
        history.problem.isEmpty() ? QString::fromStdString(history.summary.error().text()) : history.problem;
    Q_EMIT openFailed(history.folder, why);
    return;
  }
  if (run && hosted_.contains(run)) return;
  if (!run) run = addRun(history.summary ? QString::fromStdString(history.summary->run_id) : QString(), history.folder);
  loading_.insert(run);
  if (history.summary) {
    run->setSummary(*history.summary);
    checkpoints_.insert(history.folder, QString::fromStdString(history.summary->last_checkpoint));
  }
  if (history.plan) run->setPlan(*history.plan);
  // A run that another process trains can be attached to, wherever its folder lies.
  if (history.summary && history.summary->state == "running" && !live_elsewhere_.contains(history.folder)) {
    live_elsewhere_.append(history.folder);
    Q_EMIT refreshed();
  }
  const bool asked_to_open = history.asked_to_open;
  history.run = run;
  histories_.push_back(std::make_unique<History>(std::move(history)));
  feed_timer_.start();
  if (asked_to_open) Q_EMIT opened(run);
}

void RunLibrary::feedSlice() {
  if (histories_.empty()) {
    feed_timer_.stop();
    return;
  }
  History& history = *histories_.front();
  const std::size_t end = std::min(history.fed + slice, history.events.size());
  const std::vector<RunEvent> events(
      std::make_move_iterator(history.events.begin() + static_cast<std::ptrdiff_t>(history.fed)),
      std::make_move_iterator(history.events.begin() + static_cast<std::ptrdiff_t>(end)));
  history.fed = end;
  append(history.run, events);
  if (end < history.events.size()) return;
  RunSeries* run = history.run;
  if (history.summary) {
    run->setSummary(*history.summary);
    // The last event of a run whose supervisor died says "running"; its folder knows better.
    if (history.summary->state == "interrupted")
      run->setState(RunState::failed, tr("interrupted after update %1").arg(run->last().update));
  }
  loaded_.insert(run);
  histories_.pop_front();
  Q_EMIT loaded(run);
}

void RunLibrary::append(RunSeries* run, const std::vector<RunEvent>& events) {
  run->append(events);
  log_.append(run->id(), events);
}

void RunLibrary::assignColors(const QList<RunSeries*>& shown) {
  QSet<int> used;
  for (RunSeries* run : shown) {
    int color = run->colorIndex();
    if (color < 0 || used.contains(color)) {
      QSet<int> taken = used;
      for (const RunSeries* other : table_.runs())
        if (other->colorIndex() >= 0 && other->colorIndex() < 8) taken.insert(other->colorIndex());
      const QSet<int>& avoid = taken.size() < 8 ? taken : used;
      for (color = 0; avoid.contains(color);) ++color;
      run->setColorIndex(color);
    }
    used.insert(color);
  }
}

std::int64_t RunLibrary::resumeUpdate(const QString& folder) const {
  // "step-100"
  return checkpoints_.value(canonical(folder)).section(QLatin1Char('-'), 1).toLongLong();
}

}  // namespace accrue::ui
