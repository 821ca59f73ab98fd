// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <optional>

#include "accrue/run/facts/corpus_report.h"
#include "kit/job_runner.h"

class QLabel;
class QPushButton;
class QSpinBox;

namespace accrue::ui {

struct DockPanel;
class PreflightRunner;
class SpecDocument;

/// The data dock: datasets of an indexed spec with their parts and shares, and the source of one sample. Files are read
/// in the background; an index is read only when a sample is requested.
class DataPanel : public QWidget {
  Q_OBJECT

 public:
  DataPanel(SpecDocument* document, PreflightRunner* preflight, QWidget* parent = nullptr);
  DockPanel dock();
  void focusSample();

 protected:
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void look();
  void lookAtSample();
  void showCorpus(const Result<CorpusReport>& report);
  void showSample(const Result<SampleReport>& report);

  SpecDocument* document_;
  PreflightRunner* preflight_;
  QLabel* title_;
  QLabel* sets_;
  QWidget* choice_;
  QSpinBox* sample_;
  QPushButton* show_;
  QLabel* origin_;
  QLabel* empty_;
  Result<CorpusReport> corpus_;
  std::optional<Result<SampleReport>> shown_;
  bool looking_ = false;
  bool look_again_ = false;  ///< the spec changed while its data were being read
  quint64 sample_request_ = 0;
  JobRunner jobs_;
};

}  // namespace accrue::ui
