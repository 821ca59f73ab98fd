// SPDX-License-Identifier: Apache-2.0
// Rows of [data].
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

constexpr std::string_view later_data[] = {"indexed"};
constexpr std::string_view token_types[] = {"uint16", "uint32"};

bool is_file(const RunSpec& spec) {
  return spec.data.kind == DataKind::text || spec.data.kind == DataKind::tokens || spec.data.kind == DataKind::csv;
}
bool is_inline(const RunSpec& spec) {
  return spec.data.kind == DataKind::inline_;
}

}  // namespace

void add_data_fields(FieldList& list) {
  list.add("data.kind", "Data", ACCRUE_MEMBER(data.kind),
           "text: a file, each byte a token. tokens: a flat file of token numbers. csv: a table of numbers. inline: "
           "numbers in this spec. synthetic: made from the seed.")
      .unavailable(later_data);
  list.add("data.path", "File", ACCRUE_MEMBER(data.path),
           "The training data; a relative path starts at the folder of the spec.")
      .alias("Megatron-LM", "--data-path")
      .alias("transformers", "train_file")
      .when(is_file);
  list.add("data.shuffle", "Shuffle", ACCRUE_MEMBER(data.shuffle),
           "Whether each epoch visits the samples in an order of its own, drawn from the seed.")
      .alias("PyTorch", "shuffle");
  list.add("data.validation_fraction", "Kept for evaluation", ACCRUE_MEMBER(data.validation_fraction),
           "Share of the samples, taken from the end of the data and rounded up, that is never trained on.")
      .range(0, 0.9)
      .alias("Keras", "validation_split")
      .alias("transformers", "validation_split_percentage");
  list.add("data.samples", "Samples", ACCRUE_MEMBER(data.samples), "How many samples the generator makes.")
      .unit("samples")
      .range(1, 100000000)
      .when([](const RunSpec& spec) { return spec.data.kind == DataKind::synthetic; });
  list.add("data.token_type", "Token type", ACCRUE_MEMBER(data.token_type),
           "Bytes of one token number in the file: uint16 has 2, uint32 has 4, least significant byte first.")
      .one_of(token_types)
      .when([](const RunSpec& spec) { return spec.data.kind == DataKind::tokens; })
      .advanced();
  list.add("data.label_columns", "Label columns", ACCRUE_MEMBER(data.label_columns),
           "Columns of a csv file that hold y: names of its header line, or numbers from 1. Left empty: the last one.")
      .when([](const RunSpec& spec) { return spec.data.kind == DataKind::csv; });
  list.add("data.x", "x", ACCRUE_MEMBER(data.x), "Inputs, one row a sample.")
      .rows("[number, ...]")
      .when(is_inline)
      .advanced();
  list.add("data.y", "y", ACCRUE_MEMBER(data.y), "What the model should answer, one row a sample.")
      .rows("[number, ...]")
      .when(is_inline)
      .advanced();
  list.add("data.sequences", "Sequences", ACCRUE_MEMBER(data.sequences),
           "Samples of unequal length; each number is one position of a linear model with one input.")
      .rows("[number, ...]")
      .when(is_inline)
      .advanced();
  list.add("data.labels", "Labels", ACCRUE_MEMBER(data.labels),
           "The class of each position of data.sequences; -100 is left out of the loss.")
      .rows("[whole number, ...]")
      .when(is_inline)
      .advanced();
}

}  // namespace accrue::field_detail
