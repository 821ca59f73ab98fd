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

/// Where Accrue differs from the originals because they have a defect: what it means for the spec that is edited, and a
/// switch where a run can do as they do. Not modal.
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
