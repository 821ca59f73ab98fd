// SPDX-License-Identifier: Apache-2.0
// Gradient handlers: data parallelism without a reducer. A handler takes the gradients as they lie after the last
// backward of a window and reduces them in one pass, right before clipping. All handlers of a rank run in one order.
//
// The averaging ones lay all gradients of one dtype into one buffer, divide by the group's size, sum over the group and
// copy back. Which parameters have a gradient is agreed first, in one small reduction, so a parameter that a rank did
// not use counts as zero there instead of leaving the others waiting; one that no rank used stays without.
// Collective: each handler on its own group. Thread: the training thread. Shapes: parameters of any, the same on every
// rank of the group. Source: colossalai.engine.gradient_handler.
#pragma once

#include <ATen/core/Tensor.h>

#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "accrue/comm/communicator.h"

namespace accrue::colossalai {

class BaseGradientHandler {
 public:
  virtual ~BaseGradientHandler() = default;
  virtual void handle_gradient() = 0;
  /// What it is, and what it reduces over how many ranks.
  virtual std::string text() const { return "gradient handler"; }
};

std::ostream& operator<<(std::ostream& out, const BaseGradientHandler& handler);

/// The mean over the data-parallel ranks. `group` must outlive the handler, here and below.
class DataParallelGradientHandler : public BaseGradientHandler {
 public:
  DataParallelGradientHandler(std::vector<at::Tensor> parameters, Communicator& group);
  void handle_gradient() override;
  std::string text() const override { return "DataParallelGradientHandler: " + scope(); }

 protected:
  /// "3 parameters over 2 ranks"
  std::string scope() const;

 private:
  std::vector<at::Tensor> parameters_;
  Communicator& group_;
};

/// The mean over the ranks of sequence and data parallelism together, which `group` spans.
class SequenceParallelGradientHandler final : public DataParallelGradientHandler {
 public:
  using DataParallelGradientHandler::DataParallelGradientHandler;
  std::string text() const override { return "SequenceParallelGradientHandler: " + scope(); }
};

/// Parameters that every rank has, over the data-parallel ranks; each expert's, over the ranks that hold that expert.
class MoeGradientHandler final : public BaseGradientHandler {
 public:
  struct Group {
    std::vector<at::Tensor> parameters;
    Communicator* ranks = nullptr;
  };
  /// Errors: throws std::invalid_argument where an expert has no group.
  MoeGradientHandler(std::vector<at::Tensor> replicated, Communicator& data, const std::vector<Group>& experts);
  void handle_gradient() override;
  /// The replicated parameters' handler, then each expert's, line by line.
  std::string text() const override;

 private:
  std::vector<DataParallelGradientHandler> groups_;
};

/// Parameters whose weights several pipeline stages share: the plain sum, as each stage holds a part of the gradient.
class PipelineSharedModuleGradientHandler final : public BaseGradientHandler {
 public:
  PipelineSharedModuleGradientHandler(std::vector<at::Tensor> shared, Communicator& stages);
  void handle_gradient() override;
  std::string text() const override;

 private:
  std::vector<at::Tensor> shared_;
  Communicator& stages_;
};

/// An optimizer that holds a shard of its state and reduces its gradients itself.
class SyncsGradients {
 public:
  virtual ~SyncsGradients() = default;
  virtual void sync_grad() = 0;
};

class ZeROGradientHandler final : public BaseGradientHandler {
 public:
  explicit ZeROGradientHandler(SyncsGradients& optimizer) : optimizer_(optimizer) {}
  void handle_gradient() override { optimizer_.sync_grad(); }
  std::string text() const override { return "ZeROGradientHandler"; }

 private:
  SyncsGradients& optimizer_;
};

/// Who reduces, as colossalai.initialize chooses where the caller names no handler.
enum class GradientReduction { none, zero_handler, distributed_data_parallel, data_parallel_handler };
struct ParallelSetup {
  std::int64_t data_parallel = 1;
  bool zero = false;
  bool sequence_parallel = false;
  bool pipeline = false;
  bool naive_amp = false;
};
GradientReduction choose_reduction(const ParallelSetup& setup);

}  // namespace accrue::colossalai
