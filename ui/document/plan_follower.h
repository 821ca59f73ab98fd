// SPDX-License-Identifier: GPL-3.0-or-later
// PlanFollower: computes something about the current spec in the background whenever preflight has finished, but only
// while the answer is shown. PlanAnswers keeps the result of a function.
#pragma once

#include <QObject>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/facts/data_facts.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "kit/job_runner.h"

namespace accrue::ui {

class PreflightRunner;
class SpecDocument;

/// Thread: GUI; the work is done on a JobRunner.
class PlanFollower : public QObject {
  Q_OBJECT

 public:
  struct Question {
    RunSpec spec;
    HostFacts host;
    std::optional<DataFacts> data;  ///< empty while the data cannot be read
    std::filesystem::path base_dir;
    std::vector<PluginFacts> libraries;  ///< whose names the spec can use
  };

  /// While wanted, every preflight result is followed by an answer.
  void setWanted(bool wanted);
  /// Computes one answer, wanted or not; finished() follows.
  void refresh();
  /// Whether the answer belongs to the current document.
  bool isCurrent() const;

 Q_SIGNALS:
  void finished();

 protected:
  /// Runs in the background and returns a function that stores the answer, which is called on the GUI thread.
  using Work = std::function<std::function<void()>(const Question&)>;

  PlanFollower(SpecDocument* document, PreflightRunner* preflight, Work work, QObject* parent);

 private:
  struct Answer {
    quint64 request = 0;
    quint64 revision = 0;
    std::function<void()> keep;
  };
  void start();

  SpecDocument* document_;
  PreflightRunner* preflight_;
  Work work_;
  quint64 request_ = 0;
  quint64 result_revision_ = ~quint64{0};
  bool wanted_ = false;
  bool asked_ = false;
  JobRunner jobs_;
};

template <typename Content>
class PlanAnswers : public PlanFollower {
 public:
  /// `answer` is pure and runs in the background, if the question has data.
  PlanAnswers(SpecDocument* document, PreflightRunner* preflight, std::function<Content(const Question&)> answer,
              QObject* parent)
      : PlanFollower(
            document, preflight,
            [this, answer = std::move(answer)](const Question& asked) -> std::function<void()> {
              std::shared_ptr<const Content> result;
              if (asked.data) result = std::make_shared<const Content>(answer(asked));
              return [this, result] { result_ = result; };
            },
            parent) {}

  /// Newest answer; nullptr before the first and while the data cannot be read.
  const std::shared_ptr<const Content>& result() const { return result_; }

 private:
  std::shared_ptr<const Content> result_;
};

}  // namespace accrue::ui
