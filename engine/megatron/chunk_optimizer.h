// SPDX-License-Identifier: Apache-2.0
// The update of the chunks that a rank holds: gradients completed over the ranks, one norm, clipping, and a LibTorch
// optimizer over fragments of the parameters. Without sharding a fragment is a whole parameter. With it (ZeRO-1) a rank
// steps on what it owns of each bucket, and the replicas then gather the parameters.
// Thread: training. Source: Megatron-LM's finalize_model_grads, clip_grads and distributed optimizer.
#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/comm/mesh.h"
#include "accrue/megatron/megatron_lm_plugin.h"
#include "accrue/megatron/timers.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/run/cost/parameter_groups.h"
#include "update/masters.h"

namespace accrue::megatron {

/// Class and defaults of a user's optimizer. Errors: throws std::invalid_argument for a class
/// that is neither an Adam nor SGD.
class OptimizerCarrier {
 public:
  explicit OptimizerCarrier(const torch::optim::Optimizer& optimizer);
  const std::string& name() const { return name_; }
  double lr() const { return lr_; }
  double weight_decay() const { return weight_decay_; }
  /// A new optimizer of that class over groups of tensors.
  std::unique_ptr<torch::optim::Optimizer> make(const std::vector<std::vector<at::Tensor>>& groups) const;

 private:
  std::string name_;
  std::unique_ptr<torch::optim::OptimizerOptions> defaults_;
  double lr_ = 0.0;
  double weight_decay_ = 0.0;
};

struct PlacedParameter {
  at::Tensor tensor;
  ParameterPlace place;  ///< with a name and a slice
  ParameterGroup group;
  bool writes = true;  ///< into a state: of what several ranks of a replica hold, one does
};

/// Reads into memory. Errors: throws std::invalid_argument where the tensor does not fit, ResultError (disk).
void read_fitting(const CheckpointReader& from, const PlacedTensor& into);

struct ChunkOptions {
  bool sequence = false;  ///< tensor ranks share the positions
  bool sharded = false;   ///< replicas share the optimizer's state
};

/// Times each part of its work. A part that a step skips has no timer.
class ChunkOptimizer {
 public:
  /// `ddp` reduces the parameters named; it and `timers` must outlive this. Collective: the world.
  ChunkOptimizer(OptimizerCarrier carrier, std::vector<PlacedParameter> parameters, DistributedDataParallel& ddp,
                 Mesh& mesh, Timers& timers, ChunkOptions options);

  /// After the reduction over the replicas: what tensor ranks hold parts of, and the two uses of a tied embedding.
  /// Collective: the model axis.
  void complete_gradients();
  /// Those of half-precision parameters are scaled where the update reads them, in float32.
  void scale_gradients(double factor);
  /// Each element of the model once. Collective: the model axis, the world where sharded.
  double gradient_norm() const;
  double parameter_norm() const;
  std::int64_t zeros_in_gradients() const;
  void step(double lr, double decoupled_lr, double weight_decay);

  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  const OptimizerCarrier& carrier() const { return carrier_; }
  /// Number of the model's parameters over all ranks, without padding and copies.
  std::int64_t elements() const { return elements_; }
  /// Of a state what this rank writes, under a run's names: parameters.<p>, optimizer.<field>.<p> and, of
  /// half-precision parameters, the float32 copies optimizer.master.<p>.
  std::vector<PlacedTensor> tensors() const;
  /// Reads what this rank holds, in any layout; the function returned puts it in place. Errors: as read_fitting(), and
  /// throws std::invalid_argument for what the optimizer cannot take.
  std::function<void()> read(const CheckpointReader& from);

 private:
  /// A stretch of a parameter, and where its gradient lies.
  struct Fragment {
    std::size_t parameter = 0;  ///< in parameters_
    std::size_t reached = 0;    ///< in ddp.parameters()
    std::size_t arena = 0;
    FlatRange range;          ///< in the arena
    std::int64_t offset = 0;  ///< in the parameter
    Masters master;
    FlatRange stretch() const { return {.offset = offset, .size = range.size}; }  ///< of the parameter
  };
  /// Its gradient, in the type of the update.
  at::Tensor gradient_of(const Fragment& fragment) const;
  /// As it lies in the arena.
  at::Tensor flat_gradient_of(const Fragment& fragment) const;
  /// Over the fragments of the model, each element once.
  template <typename Of>
  double sum(const Of& of) const;
  /// use(fragment, "state.P.") in the order of optimizer_state().
  template <typename Use>
  void for_each_state(const Use& use) const;
  void gather_parameters();

  OptimizerCarrier carrier_;
  std::vector<PlacedParameter> parameters_;
  DistributedDataParallel& ddp_;
  Mesh& mesh_;
  Timers& timers_;
  ChunkOptions options_;
  std::vector<UpdateShard> shards_;  ///< under ZeRO, by arena
  std::vector<Fragment> fragments_;
  std::vector<ParameterGroup> groups_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::int64_t elements_ = 0;
  double pending_ = 1.0;  ///< factor of half-precision gradients
};

}  // namespace accrue::megatron
