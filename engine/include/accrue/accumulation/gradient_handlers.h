// SPDX-License-Identifier: Apache-2.0
// Gradient handlers: data parallelism without a reducer. A handler reduces the gradients after the last backward of a
// window, in one pass, right before clipping. All handlers of a rank run in the same order on every rank.
//
// The averaging handlers copy all gradients of one dtype into a buffer, divide by the group's size, sum over the group
// and copy back. A small reduction first determines which parameters have a gradient. A parameter that a rank did not
// use counts as zero there, so no rank waits; one that no rank used stays without a gradient. Collective: each handler
// on its own group. Thread: the training thread. Shapes: parameters of any shape, equal on every rank of the group.
// Source: colossalai.engine.gradient_handler.
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
  /// Describes the handler: what it reduces, and over how many ranks.
  virtual std::string text() const { return "gradient handler"; }
};

std::ostream& operator<<(std::ostream& out, const BaseGradientHandler& handler);

/// Handler that averages over the data-parallel ranks. `group` must outlive the handler, here and below.
class DataParallelGradientHandler : public BaseGradientHandler {
 public:
  DataParallelGradientHandler(std::vector<at::Tensor> parameters, Communicator& group);
  void handle_gradient() override;
  std::string text() const override { return "DataParallelGradientHandler: " + scope(); }

 protected:
  /// Returns "3 parameters over 2 ranks".
  std::string scope() const;

 private:
  std::vector<at::Tensor> parameters_;
  Communicator& group_;
};

/// Handler that averages over the ranks of sequence and data parallelism together, which `group` spans.
class SequenceParallelGradientHandler final : public DataParallelGradientHandler {
 public:
  using DataParallelGradientHandler::DataParallelGradientHandler;
  std::string text() const override { return "SequenceParallelGradientHandler: " + scope(); }
};

/// Handler that averages replicated parameters over the data-parallel ranks, and each expert's parameters over the
/// ranks that hold that expert.
class MoeGradientHandler final : public BaseGradientHandler {
 public:
  struct Group {
    std::vector<at::Tensor> parameters;
    Communicator* ranks = nullptr;
  };
  /// Errors: throws std::invalid_argument if an expert has no group.
  MoeGradientHandler(std::vector<at::Tensor> replicated, Communicator& data, const std::vector<Group>& experts);
  void handle_gradient() override;
  /// Describes the replicated parameters' handler, then each expert's, line by line.
  std::string text() const override;

 private:
  std::vector<DataParallelGradientHandler> groups_;
};

/// Handler of parameters whose weights several pipeline stages share: a plain sum, as each stage holds a part of the
/// gradient.
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

/// Ways of reducing gradients, as colossalai.initialize chooses if the caller names no handler.
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
