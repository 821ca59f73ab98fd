// SPDX-License-Identifier: GPL-3.0-or-later
// RunLibrary: all runs of the studio, live and from disk, with their table and log. Folders are listed and read in the
// background; their events are delivered one slice per frame.
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
  /// Events delivered to a run per frame while its history is read.
  static constexpr std::size_t slice = 4000;
  /// Maximum number of listed runs of the folder, newest first.
  static constexpr std::size_t listed_runs = 500;

  enum class Past { keep, forget };

  explicit RunLibrary(QString runs_dir, QObject* parent = nullptr);
  ~RunLibrary() override;

  RunTableModel* table() { return &table_; }
  EventLogModel* log() { return &log_; }
  QString runsDir() const { return runs_dir_; }

  /// Lists the runs folder in the background, and again whenever it changes.
  void refresh();
  /// Adds a run that is hosted or attached here from now on. Its measured data are kept (a resume continues them) or
  /// cleared (an attach delivers the whole history again).
  RunSeries* addLive(const QString& folder, const std::optional<RunPlan>& plan, Past past);
  /// Adds the run of a folder, anywhere on disk, and reads it; opened() or openFailed() follows.
  void open(const QString& folder);
  /// Reads a listed run's events unless they have been read.
  void load(RunSeries* run);
  /// Interval of background checks of runs that another process hosts.
  static constexpr std::chrono::milliseconds watch_interval{3000};
  /// Whether all events of a run have arrived, or come from its host.
  bool isLoaded(const RunSeries* run) const;
  RunSeries* find(const QString& folder) const;
  /// Removes a run whose folder was moved away from the table; the second function puts it back. The object stays alive
  /// with its data.
  void takeOut(RunSeries* run);
  void putBack(RunSeries* run);

  /// Gives each run that is shown for the first time a colour index: the colour that the fewest shown runs have, and an
  /// index that no run has if possible. A run keeps its index while shown; a hidden run gets another one if a shown run
  /// has taken it.
  void assignColors(const QList<RunSeries*>& shown);
  /// Passes a live batch to the run and the log.
  void append(RunSeries* run, const std::vector<RunEvent>& events);
  /// Folders (canonical) of runs that ended without a last event, newest first. The second function: those that another
  /// process hosts.
  QStringList interrupted() const { return interrupted_; }
  QStringList liveElsewhere() const { return live_elsewhere_; }
  /// Update from which a listed run could continue; 0: from its start.
  std::int64_t resumeUpdate(const QString& folder) const;
  /// Whether a run came in a bundle: it can be shown and compared, but neither resumed nor branched.
  bool isImported(const QString& folder) const;

 Q_SIGNALS:
  void refreshed();
  /// Emitted only for open(), not for a run that is read because it is shown.
  void opened(accrue::ui::RunSeries* run);
  /// Another process turned out to host a run that was read.
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
  QSet<const RunSeries*> hosted_;   ///< whose events come from a bridge
  QSet<const RunSeries*> loading_;  ///< whose events are being read, or were read
  QSet<const RunSeries*> loaded_;   ///< whose events were read
  QHash<QString, QString> checkpoints_;
  QSet<const RunSeries*> shown_;  ///< that have a colour index
  QSet<QString> imported_;        ///< folders of runs from bundles
  QStringList interrupted_;
  QStringList live_elsewhere_;
  std::deque<std::unique_ptr<History>> histories_;
  QTimer feed_timer_;
  QTimer refresh_delay_;
  QTimer watch_timer_;
  QFileSystemWatcher* watcher_;
  QSet<QString> reading_;  ///< folders that are being read
  QSet<QString> asked_;    ///< those for which open() waits
  bool listing_ = false;
  bool watching_ = false;
  JobRunner jobs_;
};

}  // namespace accrue::ui
