// SPDX-License-Identifier: Apache-2.0
// Parameters that a rank holds, and which part of each, in a model that is divided over tensor-parallel ranks and
// pipeline stages. Pure: the planner counts bytes from it, modules are built from it, and checkpoints place tensors by
// it.
//
// A table of tokens may have more rows than there are tokens (model.vocabulary_multiple), so that ranks can divide it.
// Under "fixed" padding those rows are not part of the model: they stay zero, give no logits, and are in neither
// checkpoints nor final weights. Under "megatron" they are trained like the others; final weights end at the
// vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// Weight that embeds tokens in the first part of a model and is the head's matrix in the last part.
inline constexpr std::string_view tied_embedding = "token_embedding.weight";

/// One rank's share of one part of a model. All parts hold equally many consecutive blocks. The first part also holds
/// the embeddings, the last part the final norm and the head. Part i of p stages is chunk i / p of stage i % p.
///
/// In a T5 of several parts, the first ones hold the encoder's blocks, equally many each, and those from `split` on the
/// decoder's. The part at the split embeds the decoder's tokens with a copy of both embeddings.
struct ModelShare {
  std::int64_t tensor_ranks = 1;
  std::int64_t tensor_rank = 0;
  std::int64_t parts = 1;
  std::int64_t part = 0;
  std::int64_t split = 0;  ///< t5: first part of the decoder; 0: half of the parts

  bool first() const { return part == 0; }
  bool last() const { return part == parts - 1; }
  bool operator==(const ModelShare&) const = default;
};

/// A parameter as one rank holds it. The undivided parameter is viewed in the dims along which ranks divide it: packed
/// queries, keys and values [3 D, D] are [3, D, D].
struct ParameterShare {
  std::string name;                  ///< as in parameter_shapes()
  std::vector<std::int64_t> whole;   ///< of the undivided parameter
  std::vector<std::int64_t> offset;  ///< of this rank's box in it
  std::vector<std::int64_t> extent;
  std::vector<std::int64_t> shape;        ///< of the box as in its module, including padding rows
  std::vector<std::int64_t> whole_shape;  ///< of the undivided parameter as in the final weights
  bool decays = true;
  bool divided = false;  ///< the tensor-parallel ranks hold different parts of it
  bool on_rows = false;  ///< sequence parallelism: a rank uses it on its own rows, so gradients are summed over ranks
  bool shared = false;   ///< copy of an embedding of the first part that another part uses too
  bool padded = false;   ///< including the rows beyond the vocabulary that some rank's module has

  std::int64_t numel() const;  ///< of the module's shape
  bool operator==(const ParameterShare&) const = default;
};

/// Parameters in module order. check_share() must accept the share.
std::vector<ParameterShare> parameter_shares(const ModelSpec& model, const ModelShare& share);

/// The blocks of a part: [first, last).
struct BlockRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
/// Blocks of a part; for a T5 the encoder's.
BlockRange blocks_of(const ModelSpec& model, const ModelShare& share);
/// Decoder blocks of a T5; empty for other models.
BlockRange decoder_blocks_of(const ModelSpec& model, const ModelShare& share);
/// First part of a T5 in several parts that holds decoder blocks; 0 for other models and for one part.
std::int64_t split_part(const ModelSpec& model, std::int64_t parts, std::int64_t split);
/// The share of one part under a spec.
ModelShare share_under(const ModelSpec& model, const ParallelSpec& parallel, std::int64_t tensor_rank,
                       std::int64_t stage, std::int64_t chunk);
/// Blocks of a part that backward recomputes from one kept input, by their places in the part: consecutive ranges from
/// its first block on. Empty unless whole blocks are recomputed.
std::vector<BlockRange> recomputed_blocks(const ParallelSpec& parallel, std::int64_t blocks);

/// Rows of the token embedding over all tensor-parallel ranks.
std::int64_t padded_vocabulary(const ModelSpec& model, std::int64_t tensor_ranks);
/// Number of those rows, from the first, that take part in the softmax.
std::int64_t classes_of(const ModelSpec& model, std::int64_t tensor_ranks);

/// Returns why a model cannot be divided this way, in words for the user; empty if it can.
/// `split`: as in ModelShare.
std::string check_share(const ModelSpec& model, std::int64_t tensor_ranks, std::int64_t parts, std::int64_t split = 0);
/// Checks all keys of a spec in the same way.
std::string check_division(const ModelSpec& model, const ParallelSpec& parallel);

}  // namespace accrue
