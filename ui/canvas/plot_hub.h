// SPDX-License-Identifier: GPL-3.0-or-later
// PlotHub: shared state of stacked plots: the shown runs, the clock and range of X, the cursor, and drawing options.
// Plots read it and request changes from it; it draws nothing.
#pragma once

#include <QList>
#include <QObject>
#include <QPointer>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "kit/clock.h"
#include "series/run_series.h"

namespace accrue::ui {

class GroupCurve;

struct Span {
  double low = 0.0;
  double high = 1.0;
  double size() const { return high - low; }
  bool operator==(const Span&) const = default;
};

/// Thread: GUI.
class PlotHub : public QObject {
  Q_OBJECT

 public:
  explicit PlotHub(QObject* parent = nullptr);
  ~PlotHub() override;

  void setRuns(const QList<RunSeries*>& runs);
  /// The shown runs that still exist, bottom first; the focused one last.
  QList<RunSeries*> runs() const;
  void setFocused(RunSeries* run);
  RunSeries* focused() const { return focused_; }
  /// Run of the windows and the sync strip: the focused one, shown or not; else the last shown one.
  const RunSeries* leading() const;
  bool anyLive() const;

  void setClock(Clock clock);
  Clock clock() const { return clock_; }
  void setLogY(bool on);
  bool logY() const { return logY_; }
  void setSmoothing(double weight);
  double smoothing() const { return smoothing_; }
  /// Sets whether the loss of several seeds is drawn as one curve with a band.
  void setGroupSeeds(bool on);
  bool groupSeeds() const { return groupSeeds_; }
  /// Groups of shown, finished runs that differ only by seed; empty if seeds are not grouped. A curve lives as long as
  /// its runs; fetch the list once for many look-ups.
  const std::vector<std::shared_ptr<const GroupCurve>>& groups() const;
  void setFollow(bool on);
  bool follow() const { return follow_; }

  Span x() const { return x_; }
  /// Range of Y that the user chose for a plot; empty: fitted to the data.
  std::optional<Span> y(int plot) const;
  /// Sets the range for the user: recorded for zoomBack(), and the view stops following.
  void zoomTo(const Span& x, int plot = -1, std::optional<Span> y = {});
  /// Continues the last user change (wheel, drag) without a new history entry.
  void moveTo(const Span& x);
  void scaleX(double factor, double around);
  void scaleX(double factor) { scaleX(factor, (x_.low + x_.high) / 2.0); }
  void panX(double fraction);
  void fit();
  /// Shows the window of the focused run at a position, or everything if that window is shown already. Returns false if
  /// the run has none.
  bool zoomToWindow(double x);
  /// Shows the next or previous window; the first call shows the one in the middle of the view.
  void stepWindow(int direction);
  void zoomBack();
  void zoomForward();
  /// Follows live data; called once per frame.
  void advance();

  /// Position of the shared cursor on the clock; empty if hidden.
  std::optional<double> cursor() const { return cursor_; }
  void setCursor(std::optional<double> x);
  /// Moves the cursor to the next recorded point of the focused run.
  void stepCursor(int direction);

  /// Changes with everything that affects the plots, except measured data.
  std::uint64_t revision() const { return revision_; }
  /// Sum of the runs' revisions: grows when any of them changes.
  std::uint64_t dataRevision() const;

 Q_SIGNALS:
  void cursorChanged();
  void clockChanged(accrue::ui::Clock clock);
  void logYChanged(bool on);
  void smoothingChanged(double weight);
  void groupSeedsChanged(bool on);
  void followChanged(bool on);

 private:
  struct View {
    Span x;
    bool fitted = true;
    std::map<int, Span> y;
  };
  void remember();
  void show(const View& view);
  void setX(const Span& x);
  /// Call when names or set-ups of the shown runs have changed.
  void regroup();
  Span fittedX() const;
  /// Index of the update that ends the window at a position; none if there is no update.
  std::optional<std::size_t> windowAt(double x) const;
  Span windowSpan(std::size_t window) const;
  /// Range of a window with margins.
  Span viewOfWindow(std::size_t window) const;
  void showWindow(std::size_t window);
  double newest() const;
  void userMoved();
  void moveFollow(bool on);

  QList<QPointer<RunSeries>> runs_;
  QPointer<RunSeries> focused_;
  Clock clock_ = Clock::update;
  bool logY_ = false;
  bool follow_ = true;
  bool fitted_ = true;
  double smoothing_ = 0.0;
  Span x_;
  std::map<int, Span> y_;
  std::optional<double> cursor_;
  std::vector<View> back_;
  std::vector<View> forward_;
  std::uint64_t revision_ = 1;
  bool groupSeeds_ = true;
  mutable bool regroup_ = true;
  /// A finished run, its number of updates, and its number of truncations.
  using Finished = std::tuple<QPointer<RunSeries>, std::size_t, std::uint64_t>;
  mutable std::vector<Finished> grouped_;  ///< the runs that were searched for groups
  mutable std::vector<std::shared_ptr<const GroupCurve>> groups_;
};

/// Returns the smallest of 1, 2, 5, 10, ... that is at least `value`.
double niceCeiling(double value);
/// Returns [low, high] with a small margin; for a constant the margin follows its magnitude.
Span padded(double low, double high, bool logarithmic);
/// Whether it failed before any measurement, so that no plot can show it.
bool failedUnmeasured(const RunSeries& run);
/// Keeps a range as long as it fits its data well enough, so that a live axis does not change in every frame.
Span settled(const Span& current, const Span& wanted, bool logarithmic);

}  // namespace accrue::ui
