// SPDX-License-Identifier: GPL-3.0-or-later
// RunLibrary: every run the studio knows, live and from disk, with its table and its log. Folders are listed and read
// in the background; their events are delivered one slice a frame.
#pragma once

#include <QHash>
#include <QObject>
#include <QSet>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "event_log_model.h"
#include "kit/job_runner.h"
#include "run_table_model.h"
#include "series/run_series.h"

class QFileSystemWatcher;

namespace accrue {
struct RunSummary;
}

namespace accrue::ui {

/// Thread: GUI. Owns the runs.
class RunLibrary : public QObject {
  Q_OBJECT

 public:
  /// Events handed to a run per frame while its history is read.
  static constexpr std::size_t slice = 4000;
  /// How many runs of the folder are listed, newest first.
  static constexpr std::size_t listed_runs = 500;

  enum class Past { keep, forget };

  explicit RunLibrary(QString runs_dir, QObject* parent = nullptr);
  ~RunLibrary() override;

  RunTableModel* table() { return &table_; }
  EventLogModel* log() { return &log_; }
  QString runsDir() const { return runs_dir_; }

  /// Lists the runs folder in the background, and again whenever it changes.
  void refresh();
  /// A run that is hosted or attached here from now on. Its measured data are kept (a resume continues them) or cleared
  /// (an attach delivers the whole history again).
  RunSeries* addLive(const QString& folder, const std::optional<RunPlan>& plan, Past past);
  /// Adds the run of a folder, anywhere on disk, and reads it; opened() or openFailed() follows.
  void open(const QString& folder);
  /// Reads a listed run's events unless they have been read.
  void load(RunSeries* run);
  /// How often runs that another process hosts are checked, in the background.
  static constexpr std::chrono::milliseconds watch_interval{3000};
  /// True once a run's events are all there, or come from its host.
  bool isLoaded(const RunSeries* run) const;
  RunSeries* find(const QString& folder) const;
  /// Takes a run whose folder was moved away out of the table, and puts it back. It lives on, with what it holds.
  void takeOut(RunSeries* run);
  void putBack(RunSeries* run);

  /// Gives each run that is shown for the first time a colour index: of the colour that the fewest shown runs have,
  /// and one that no run has while there is such a one. A run keeps its index while it is shown; one that was hidden
  /// gets another if a shown run has taken it.
  void assignColors(const QList<RunSeries*>& shown);
  /// Hands a live batch to the run and the log.
  void append(RunSeries* run, const std::vector<RunEvent>& events);
  /// Folders (canonical) whose runs ended without a last event, newest first; and those that another process hosts.
  QStringList interrupted() const { return interrupted_; }
  QStringList liveElsewhere() const { return live_elsewhere_; }
  /// The update a listed run could go on from; 0 = from its start.
  std::int64_t resumeUpdate(const QString& folder) const;
  /// Whether a run came in a bundle: it is shown and compared, and neither resumed nor branched.
  bool isImported(const QString& folder) const;

 Q_SIGNALS:
  void refreshed();
  /// Follows open() alone; a run that is read because it is shown does not emit it.
  void opened(accrue::ui::RunSeries* run);
  /// A run that was read turned out to be hosted by another process.
  void liveFound(accrue::ui::RunSeries* run);
  void openFailed(const QString& folder, const QString& message);
  void loaded(accrue::ui::RunSeries* run);

 private:
  int freeColor() const;
  struct Listing;
  struct History;
  void watchFolder();
  void takeListing(const Listing& listing);
  void takeSummary(RunSummary summary);
  void takeFacts(const QString& folder, const RunSummary& summary);
  void watchLive();
  void noteLive(const QString& folder);
  void read(const QString& path);
  void forget(RunSeries* run);
  void takeHistory(History history);
  void feedSlice();
  void readOn(History& history);
  RunSeries* addRun(const QString& id, const QString& folder, const QString& startedAt);

  QString runs_dir_;
  RunTableModel table_;
  EventLogModel log_;
  QHash<QString, RunSeries*> by_folder_;
  QSet<const RunSeries*> hosted_;   ///< their events come from a bridge
  QSet<const RunSeries*> loading_;  ///< their events are being read, or have been
  QSet<const RunSeries*> loaded_;   ///< their events have been read
  QHash<QString, QString> checkpoints_;
  QSet<const RunSeries*> shown_;  ///< that have their colour index
  QSet<QString> imported_;        ///< folders of runs that came in a bundle
  QStringList interrupted_;
  QStringList live_elsewhere_;
  std::deque<std::unique_ptr<History>> histories_;
  QTimer feed_timer_;
  QTimer refresh_delay_;
  QTimer watch_timer_;
  QFileSystemWatcher* watcher_;
  QSet<QString> reading_;  ///< folders that are being read
  QSet<QString> asked_;    ///< of them, those that open() waits for
  bool listing_ = false;
  bool watching_ = false;
  JobRunner jobs_;
};

}  // namespace accrue::ui
