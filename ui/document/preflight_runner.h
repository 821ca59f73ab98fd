// SPDX-License-Identifier: GPL-3.0-or-later
// PreflightRunner: computes the plan or the findings in the background after every edit. Data are scanned again only if
// the fields on which the scan depends, or the file's time or size, have changed.
#pragma once

#include <QObject>
#include <QTimer>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/facts/host_facts.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/preflight/preflight.h"
#include "kit/job_runner.h"
#include "series/plan_outline.h"

namespace accrue::ui {

class LibraryProbe;
class SpecDocument;

/// Thread: GUI; the work is done on a JobRunner.
class PreflightRunner : public QObject {
  Q_OBJECT

 public:
  static constexpr std::chrono::milliseconds debounce{50};

  explicit PreflightRunner(SpecDocument* document, QObject* parent = nullptr);

  /// Newest result; isCurrent() says whether it belongs to the current document.
  const Preflight& result() const { return result_; }
  bool isCurrent() const;
  /// Sketch of the newest result's plan for the form; empty without a plan.
  const std::optional<PlanSketch>& sketch() const { return sketch_; }
  /// Data facts of the newest result; empty if the data could not be read.
  const std::optional<DataFacts>& dataFacts() const { return data_; }
  /// The document's spec with the keys that the weights it starts from set.
  const RunSpec& spec() const { return spec_; }
  /// The document as it runs: fields of the Megatron-LM plug-in are converted to ordinary keys. Use this to display a
  /// run, and the document for editing.
  const LoweredMegatron& lowered() const;
  /// Checks again at once (before a run, or after the host's facts changed).
  void refresh();
  /// Takes the result of the device probe and checks again.
  void setHostFacts(const HostFacts& facts);
  const HostFacts& hostFacts() const { return host_; }
  /// Sets the program that describes plug-in libraries; by default the one beside this program.
  void setRankProgram(const std::string& program);
  /// Sets the plug-in libraries that the document's run loads, and checks again.
  void chooseLibraries(std::vector<PluginRecord> libraries);
  const std::vector<PluginRecord>& chosenLibraries() const { return chosen_; }
  /// Those of the newest result; none if the spec names nothing of a library.
  const std::vector<PluginFacts>& libraries() const { return libraries_; }

 Q_SIGNALS:
  void finished();
  void librariesChosen();

 private:
  struct ScanCache;
  struct Answer {
    quint64 request = 0;
    quint64 revision = 0;
    Preflight result;
    std::optional<DataFacts> data;
    std::optional<PlanSketch> sketch;
    std::vector<PluginFacts> libraries;
    RunSpec spec;
  };
  void start();
  void take(Answer answer);

  SpecDocument* document_;
  QTimer delay_;
  HostFacts host_;
  std::shared_ptr<ScanCache> cache_;
  std::shared_ptr<LibraryProbe> probe_;
  std::vector<PluginRecord> chosen_;
  std::vector<PluginFacts> libraries_;
  Preflight result_;
  std::optional<DataFacts> data_;
  std::optional<PlanSketch> sketch_;
  RunSpec spec_;
  mutable LoweredMegatron lowered_;
  mutable std::optional<quint64> lowered_revision_;
  quint64 request_ = 0;
  quint64 result_revision_ = ~quint64{0};
  JobRunner jobs_;
};

}  // namespace accrue::ui
