// SPDX-License-Identifier: Apache-2.0
// Which parameters a rank holds where a model is divided over tensor-parallel ranks and pipeline stages, and which part
// of each. Pure: the planner counts bytes from it, modules are built from it, and checkpoints place tensors by it.
//
// A table of tokens may have more rows than there are tokens (model.vocabulary_multiple), so that ranks can divide it.
// Under "fixed" padding those rows are no part of the model: they stay zero, no logit is computed from them, and
// neither checkpoints nor final weights hold them. Under "megatron" they are trained like the others; final weights end
// at the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue {

/// What the first part of a model embeds tokens with and the last part's head multiplies by.
inline constexpr std::string_view tied_embedding = "token_embedding.weight";

/// One rank's share of one part of a model. A part holds equally many consecutive blocks; the first part also holds the
/// embeddings, the last the final norm and the head. Part i of p stages is chunk i / p of stage i % p.
///
/// Of a T5 in several parts the first ones hold the encoder's blocks, equally many each, and those from `split` on the
/// decoder's; the part at the split embeds the decoder's tokens with a copy of both embeddings.
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

/// A parameter as one rank holds it. The undivided parameter is seen in the dims along which ranks divide it: packed
/// queries, keys and values [3 D, D] are [3, D, D].
struct ParameterShare {
  std::string name;                  ///< as in parameter_shapes()
  std::vector<std::int64_t> whole;   ///< of the undivided parameter
  std::vector<std::int64_t> offset;  ///< of this rank's box in it
  std::vector<std::int64_t> extent;
  std::vector<std::int64_t> shape;        ///< of the box, as its module has it, with the rows of padding
  std::vector<std::int64_t> whole_shape;  ///< of the undivided parameter, as the final weights have it
  bool decays = true;
  bool divided = false;  ///< the tensor-parallel ranks hold different parts of it
  bool on_rows = false;  ///< under sequence parallelism a rank uses it on its own rows: gradients are summed over ranks
  bool shared = false;   ///< a copy of an embedding of the first part, which another part uses too
  bool padded = false;   ///< with the rows beyond the vocabulary that some rank's module has

  std::int64_t numel() const;  ///< of the module's shape
  bool operator==(const ParameterShare&) const = default;
};

/// In module order. The share must be one that check_share() finds no fault with.
std::vector<ParameterShare> parameter_shares(const ModelSpec& model, const ModelShare& share);

/// The blocks of a part: [first, last).
struct BlockRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
/// Of a T5 the encoder's.
BlockRange blocks_of(const ModelSpec& model, const ModelShare& share);
/// Of a T5; empty of other models.
BlockRange decoder_blocks_of(const ModelSpec& model, const ModelShare& share);
/// Of a T5 in several parts, the first that holds blocks of the decoder; 0 of other models, and of one part.
std::int64_t split_part(const ModelSpec& model, std::int64_t parts, std::int64_t split);
/// The share of one part under a spec.
ModelShare share_under(const ModelSpec& model, const ParallelSpec& parallel, std::int64_t tensor_rank,
                       std::int64_t stage, std::int64_t chunk);
/// The blocks of a part that backward computes again from one kept input, by their places in the part: consecutive
/// ranges from its first block on. Empty unless whole blocks are recomputed.
std::vector<BlockRange> recomputed_blocks(const ParallelSpec& parallel, std::int64_t blocks);

/// Rows of the token embedding over all tensor-parallel ranks.
std::int64_t padded_vocabulary(const ModelSpec& model, std::int64_t tensor_ranks);
/// How many of them take part in the softmax: the first ones.
std::int64_t classes_of(const ModelSpec& model, std::int64_t tensor_ranks);

/// Why a model cannot be divided so, in words for its user; empty if it can.
/// `split`: as ModelShare's.
std::string check_share(const ModelSpec& model, std::int64_t tensor_ranks, std::int64_t parts, std::int64_t split = 0);
/// The same of all that a spec says.
std::string check_division(const ModelSpec& model, const ParallelSpec& parallel);

}  // namespace accrue
