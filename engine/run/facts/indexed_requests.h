// SPDX-License-Identifier: Apache-2.0
// Requests of a spec to the samplers of BERT and T5.
#pragma once

#include "accrue/run/data/bert_dataset.h"
#include "accrue/run/data/t5_dataset.h"
#include "accrue/run/facts/indexed_corpus.h"

namespace accrue {

inline BertRequest bert_request(const RunSpec& spec, const CorpusSet& set) {
  BertRequest request{.sequence_length = spec.model.context,
                      .samples = set.requested,
                      .seed = static_cast<std::uint32_t>(index_seed(spec)),
                      .binary_head = spec.model.binary_head,
                      .short_probability = spec.data.short_sequence_probability};
  request.masking.probability = spec.data.mask_probability;
  return request;
}

inline T5Request t5_request(const RunSpec& spec, const CorpusSet& set) {
  T5Request request{.sequence_length = spec.model.context,
                    .decoder_sequence_length = spec.model.decoder_context.value_or(spec.model.context),
                    .samples = set.requested,
                    .seed = static_cast<std::uint32_t>(index_seed(spec)),
                    .short_probability = spec.data.short_sequence_probability};
  request.masking.probability = spec.data.mask_probability;
  return request;
}

inline Result<SentenceIndexRequest> sentence_request(const RunSpec& spec, const CorpusSet& set) {
  return spec.model.kind == ModelKind::t5 ? T5Dataset::index_request(t5_request(spec, set))
                                          : BertDataset::index_request(bert_request(spec, set));
}

}  // namespace accrue
