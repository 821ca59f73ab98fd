// SPDX-License-Identifier: Apache-2.0
// ZeRO-1: the part of the flat space that this rank updates, packed into one tensor. Each replica owns an equal part of
// every bucket. So one reduce-scatter brings a bucket's sum to its owners, and one all-gather returns the updated
// parameters. The gathering may overlap until the next forward of a model part needs its parameters. Source:
// Megatron-LM's distributed optimizer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "accrue/comm/communicator.h"
#include "accrue/optim/flat_optimizer.h"
#include "accrue/run/cost/shard_layout.h"

namespace accrue {

class UpdateShard {
 public:
  /// A contiguous part of a parameter that this rank owns.
  struct Part {
    std::size_t parameter = 0;
    FlatRange of_parameter;  ///< within the parameter's elements
    FlatRange packed;
  };

  /// `layout`: made for as many shards as the axis has ranks. The axis must outlive this.
  UpdateShard(const FlatLayout& layout, Communicator& axis);

  std::int64_t numel() const { return numel_; }
  /// Parts in the order of the packed space.
  const std::vector<Part>& parts() const { return parts_; }
  /// Segments of the packed space, one per part.
  std::vector<OptimizerSegment> segments(const std::vector<OptimizerSegment>& of_parameters) const;
  /// Intersects ranges of the flat space with this rank's: ascending, in the flat space.
  std::vector<FlatRange> owned(const std::vector<FlatRange>& flat) const;
  /// Does the same, with positions in the packed space.
  std::vector<FlatRange> packed(const std::vector<FlatRange>& flat) const;

  /// Packs this rank's part of a flat tensor, in another type.
  at::Tensor pack(const at::Tensor& flat, at::ScalarType type) const;
  /// Copies a packed tensor back.
  void unpack(const at::Tensor& packed, const at::Tensor& flat) const;
  /// Makes the flat tensor whole on all ranks, starting with the buckets that a forward uses first. `overlap`: returns
  /// at once; a range is whole after await(), which must precede the next unpack(). Collective: the axis.
  void gather(const at::Tensor& flat, bool overlap);
  /// Waits until the range is whole.
  void await(const FlatRange& flat);
  /// Waits until everything is whole.
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
  std::vector<Piece> pieces_;  ///< one per bucket
  std::vector<Part> parts_;
  std::int64_t numel_ = 0;
  std::vector<std::pair<FlatRange, Work>> gathers_;  ///< in progress, by bucket
};

}  // namespace accrue
