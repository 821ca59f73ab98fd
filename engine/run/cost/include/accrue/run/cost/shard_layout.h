// SPDX-License-Identifier: Apache-2.0
// Places of the parameters in one flat space, and its division into gradient buckets for the reducer and equal shards
// for ZeRO. Pure: the planner predicts bytes per update from the table that the reducer executes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// Division of a parameter over tensor-parallel ranks: none (each holds the whole), or equal parts of its dim 0 (rows),
/// of its dim 1 (columns), of each third of its dim 0 (packed queries, keys and values), or of each half (packed keys
/// and values).
enum class ParameterDivision { none, rows, columns, packed_rows, packed_halves };

/// Part of a model to which a parameter belongs, if stages hold parts. A T5's blocks are those of the encoder, which
/// has its own end.
enum class ParameterPlace { first_part, block, encoder_end, decoder_block, last_part };

struct ParameterShape {
  std::string name;  ///< as the module names it, e.g. "blocks.0.attention.qkv.weight"
  std::vector<std::int64_t> shape;
  bool decays = true;  ///< weight decay applies (matrices yes; biases and norms no)
  ParameterDivision division = ParameterDivision::none;
  ParameterPlace place = ParameterPlace::first_part;
  std::int64_t block = 0;   ///< index of its block, if that is its place
  bool by_token = false;    ///< its rows are those of the vocabulary, which may be padded
  bool every_rank = false;  ///< all tensor-parallel ranks use it on the same rows, even under sequence parallelism
  std::int64_t numel() const;
  bool operator==(const ParameterShape&) const = default;
};

/// Returns every parameter of a model in module order, as a checkpoint holds it. A test holds the engine's modules
/// equal to this. The tensor-parallel ranks affect only the padding of the vocabulary (model_share.h).
std::vector<ParameterShape> parameter_shapes(const ModelSpec& model, std::int64_t tensor_ranks = 1);

struct FlatRange {
  std::int64_t offset = 0;  ///< elements
  std::int64_t size = 0;    ///< elements
  bool operator==(const FlatRange&) const = default;
};

struct FlatLayout {
  std::vector<FlatRange>
      parameters;  ///< by parameter index; in reverse order, which is the order in which backward finishes them
  std::vector<FlatRange> buckets;  ///< contiguous, in launch order; a parameter larger than a bucket may span several
  std::int64_t numel = 0;          ///< including padding
  bool operator==(const FlatLayout&) const = default;
};

/// Lays parameters out in reverse order, each aligned to 16 elements. Cuts buckets of about bucket_bytes at any
/// element; they are larger if there would be more than 65,536. Each bucket can be cut into `shards` equal parts.
/// `alone`: a parameter that shares no bucket, so its buckets lie in it the same way in every layout that has it alone.
FlatLayout flat_layout(std::span<const std::int64_t> numels, std::int64_t bytes_per_element, std::int64_t bucket_bytes,
                       std::int64_t shards = 1, std::optional<std::size_t> alone = std::nullopt);

/// Maximum number of parts of a checkpoint tensor.
constexpr std::int64_t most_tensor_parts = 4096;

/// ZeRO: the range of each bucket that rank r of `world` owns, in bucket order. The layout must have been made for
/// `world` shards.
std::vector<FlatRange> owned_ranges(const FlatLayout& layout, std::int64_t rank, std::int64_t world);

/// Part of [0, numel) that rank r of `world` owns: equal parts, the last one shorter.
FlatRange shard_range(std::int64_t numel, std::int64_t rank, std::int64_t world);

/// Minimum number of bytes that each rank sends for an all-reduce of `bytes` over n ranks: 2 (n - 1) / n * bytes.
std::int64_t all_reduce_wire_bytes(std::int64_t bytes, std::int64_t n);

}  // namespace accrue
