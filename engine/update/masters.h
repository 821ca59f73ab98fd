// SPDX-License-Identifier: Apache-2.0
// Masters: the tensor that an optimizer changes in the place of parameters. It is a float32 copy of half-precision
// parameters, and under ZeRO a packed copy of this rank's shard; otherwise it is the parameters themselves.
#pragma once

#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

#include <utility>

#include "update/update_shard.h"

namespace accrue {

class Masters {
 public:
  /// `parameters`: a view of their memory; with a shard, which must outlive this, flat in its layout.
  explicit Masters(at::Tensor parameters, const UpdateShard* shard = nullptr)
      : parameters_(std::move(parameters)), shard_(shard), values_(as_master(parameters_)) {}

  const at::Tensor& parameters() const { return parameters_; }
  /// The tensor that updates change.
  const at::Tensor& values() const { return values_; }
  /// Whether it has memory of its own.
  bool copied() const { return !values_.is_same(parameters_); }
  /// Returns a tensor like the parameters, such as their gradient, in the place and type of the masters; the tensor
  /// itself if it has both.
  at::Tensor as_master(const at::Tensor& like_parameters) const {
    const at::ScalarType type = at::toOpMathType(parameters_.scalar_type());
    return shard_ != nullptr ? shard_->pack(like_parameters, type) : like_parameters.to(type);
  }
  /// Takes the parameters' values.
  void take() { values_.copy_(as_master(parameters_)); }
  /// Writes the updated values into the parameters.
  void put_back() const {
    if (!copied()) return;
    if (shard_ != nullptr)
      shard_->unpack(values_, parameters_);
    else
      parameters_.copy_(values_);
  }

 private:
  at::Tensor parameters_;
  const UpdateShard* shard_;
  at::Tensor values_;
};

}  // namespace accrue
