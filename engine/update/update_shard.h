// SPDX-License-Identifier: Apache-2.0
// ZeRO-1: the part of the flat space whose update is this rank's, packed into one tensor. Each replica owns an equal
// part of every bucket, so a bucket's sum goes to its owners by one reduce-scatter and the updated parameters come back
// by one all-gather. The gathering may go on until the next forward of a model part needs its parameters.
// Source: Megatron-LM's distributed optimizer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "accrue/comm/communicator.h"
#include "accrue/optim/flat_optimizer.h"
#include "accrue/run/shard_layout.h"

namespace accrue {

class UpdateShard {
 public:
  /// What this rank owns of a parameter without a gap.
  struct Part {
    std::size_t parameter = 0;
    FlatRange of_parameter;  ///< within the parameter's elements
    FlatRange packed;
  };

  /// `layout`: made for as many shards as the axis has ranks. The axis must outlive this.
  UpdateShard(const FlatLayout& layout, Communicator& axis);

  std::int64_t numel() const { return numel_; }
  /// By place in the packed space.
  const std::vector<Part>& parts() const { return parts_; }
  /// The segments of the packed space, one a part.
  std::vector<OptimizerSegment> segments(const std::vector<OptimizerSegment>& of_parameters) const;
  /// Ranges of the flat space as the ranges of it that this rank owns: ascending, in the flat space.
  std::vector<FlatRange> owned(const std::vector<FlatRange>& flat) const;
  /// The same in the packed space.
  std::vector<FlatRange> packed(const std::vector<FlatRange>& flat) const;

  /// This rank's part of a flat tensor, packed, in another type.
  at::Tensor pack(const at::Tensor& flat, at::ScalarType type) const;
  /// Puts a packed tensor back.
  void unpack(const at::Tensor& packed, const at::Tensor& flat) const;
  /// Makes the flat tensor whole on all ranks, those buckets first that a forward uses first. `overlap`: returns at
  /// once, and a part of the flat tensor is whole after an await() of it, which must come before the next unpack().
  /// Collective: the axis.
  void gather(const at::Tensor& flat, bool overlap);
  /// Waits until what lies in the range is whole.
  void await(const FlatRange& flat);
  /// Waits until everything is.
  void await_all();

 private:
  struct Piece {
    FlatRange bucket;
    FlatRange flat;
    std::int64_t packed = 0;
  };
  template <typename Use>
  void for_common(const std::vector<FlatRange>& flat, const Use& use) const;

  Communicator& axis_;
  std::vector<Piece> pieces_;  ///< one a bucket
  std::vector<Part> parts_;
  std::int64_t numel_ = 0;
  std::vector<std::pair<FlatRange, Work>> gathers_;  ///< under way, by bucket
};

}  // namespace accrue
