// SPDX-License-Identifier: Apache-2.0
// Where each parameter lies in one flat space and how that space is cut: gradient buckets for the reducer, equal shards
// for ZeRO. Pure, so the planner can say bytes per update before anything runs, and the reducer executes the same
// table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue {

/// How tensor-parallel ranks hold a parameter: each the whole of it, or equal parts of its dim 0 (rows), of its dim 1
/// (columns), of each third of its dim 0 (queries, keys and values, packed), or of each half (keys and values).
enum class ParameterDivision { none, rows, columns, packed_rows, packed_halves };

/// Which part of a model a parameter belongs to, where stages hold parts. The blocks of a T5 are the encoder's, which
/// has an end of its own.
enum class ParameterPlace { first_part, block, encoder_end, decoder_block, last_part };

struct ParameterShape {
  std::string name;  ///< as the module names it, e.g. "blocks.0.attention.qkv.weight"
  std::vector<std::int64_t> shape;
  bool decays = true;  ///< weight decay applies (matrices yes; biases and norms no)
  ParameterDivision division = ParameterDivision::none;
  ParameterPlace place = ParameterPlace::first_part;
  std::int64_t block = 0;   ///< index of its block, if that is its place
  bool by_token = false;    ///< its rows are those of the vocabulary, which may be padded
  bool every_rank = false;  ///< under sequence parallelism, too, all tensor-parallel ranks use it on the same rows
  std::int64_t numel() const;
  bool operator==(const ParameterShape&) const = default;
};

/// Every parameter of a model in module order, as a checkpoint holds it; the engine's modules are held equal to this by
/// a test. The tensor-parallel ranks matter to the padding of a vocabulary alone (model_share.h).
std::vector<ParameterShape> parameter_shapes(const ModelSpec& model, std::int64_t tensor_ranks = 1);

struct FlatRange {
  std::int64_t offset = 0;  ///< elements
  std::int64_t size = 0;    ///< elements
  bool operator==(const FlatRange&) const = default;
};

struct FlatLayout {
  std::vector<FlatRange>
      parameters;  ///< by parameter index; laid out in reverse order, the order in which backward finishes them
  std::vector<FlatRange> buckets;  ///< contiguous, in launch order; a parameter larger than a bucket may span several
  std::int64_t numel = 0;          ///< including padding
  bool operator==(const FlatLayout&) const = default;
};

/// Lays parameters out in reverse order, each aligned to 16 elements, and cuts buckets of about bucket_bytes at any
/// element; larger ones where there would be more than 65,536. Each bucket can be cut into `shards` equal parts.
/// `alone`: a parameter that shares no bucket. Its buckets then lie in it as they lie wherever else it is alone.
FlatLayout flat_layout(std::span<const std::int64_t> numels, std::int64_t bytes_per_element, std::int64_t bucket_bytes,
                       std::int64_t shards = 1, std::optional<std::size_t> alone = std::nullopt);

/// Most parts that a tensor of a checkpoint may be cut into.
constexpr std::int64_t most_tensor_parts = 4096;

/// ZeRO: what rank r of `world` owns of each bucket, in the buckets' order. The layout must be made for so many shards.
std::vector<FlatRange> owned_ranges(const FlatLayout& layout, std::int64_t rank, std::int64_t world);

/// The part of [0, numel) that rank r of `world` owns: equal parts, the last one shorter.
FlatRange shard_range(std::int64_t numel, std::int64_t rank, std::int64_t world);

/// The least bytes each rank must send for an all-reduce of `bytes` over n ranks: 2 (n - 1) / n * bytes.
std::int64_t all_reduce_wire_bytes(std::int64_t bytes, std::int64_t n);

}  // namespace accrue
