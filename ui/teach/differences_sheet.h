// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <vector>

class QCheckBox;
class QLabel;

namespace accrue {
struct UpstreamDefect;
}

namespace accrue::ui {

class PreflightRunner;
class SpecDocument;

/// Differences from the originals that are due to their defects: the effect on the edited spec, and a switch if a run
/// can reproduce upstream's behaviour. Not modal.
class DifferencesSheet : public QDialog {
  Q_OBJECT

 public:
  DifferencesSheet(SpecDocument* document, PreflightRunner* preflight, QWidget* parent = nullptr);

 private:
  struct Entry {
    const UpstreamDefect* defect = nullptr;
    QLabel* effect = nullptr;
    QCheckBox* replay = nullptr;
  };
  QWidget* buildEntry(const UpstreamDefect& defect);
  void showPlan();
  void switchReplay(const UpstreamDefect& defect, bool on);

  SpecDocument* document_;
  PreflightRunner* preflight_;
  std::vector<Entry> entries_;
};

}  // namespace accrue::ui
