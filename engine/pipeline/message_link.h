// SPDX-License-Identifier: Apache-2.0
// Transfers between pipeline stages as messages of the pipeline axis. A send is started and left to the backend, so
// that the stage keeps computing; few are open at once, because each keeps its tensor. Each message has a label. If the
// backend compares labels, stages whose operations diverge notice at the first wrong message. Stages compare their
// schedules before they begin.
#pragma once

#include <deque>

#include "accrue/comm/communicator.h"
#include "pipeline/window_executor.h"

namespace accrue {

/// A stage's index is its rank along `pipeline`. Errors: as Communicator's. Thread: training.
class MessageLink final : public StageLink {
 public:
  explicit MessageLink(Communicator& pipeline) : pipeline_(pipeline) {}

  void send(const PipelineOperation& operation, const at::Tensor& tensor) override;
  void receive(const PipelineOperation& operation, at::Tensor& tensor) override;
  void push() override { pipeline_.push(); }
  void compare(const PipelineShape& shape, const std::vector<std::vector<PipelineOperation>>& by_stage) override;
  void finish() override { wait_until_open(0); }

 private:
  MessageLabel label_of(const PipelineOperation& operation) const;
  void wait_until_open(std::size_t most);

  Communicator& pipeline_;
  std::deque<Work> open_;  ///< pending sends, oldest first
};

}  // namespace accrue
