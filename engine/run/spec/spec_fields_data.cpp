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
  list.add(ACCRUE_FIELD(data.kind), "Data",
           "text: a file, each byte a token. tokens: a flat file of token numbers. csv: a table of numbers. inline: "
           "numbers in this spec. synthetic: made from the seed.")
      .unavailable(later_data);
  list.add(ACCRUE_FIELD(data.path), "File", "The training data; a relative path starts at the folder of the spec.")
      .when(is_file)
      .elsewhere("Megatron-LM: --data-path; transformers: train_file");
  list.add(ACCRUE_FIELD(data.shuffle), "Shuffle",
           "Whether each epoch visits the samples in an order of its own, drawn from the seed.")
      .elsewhere("PyTorch: shuffle");
  list.add(ACCRUE_FIELD(data.validation_fraction), "Kept for evaluation",
           "Share of the samples, taken from the end of the data and rounded up, that is never trained on.")
      .range(0, 0.9)
      .elsewhere("Keras: validation_split; transformers: validation_split_percentage");
  list.add(ACCRUE_FIELD(data.samples), "Samples", "How many samples the generator makes.")
      .range(1, 100000000, "samples")
      .when([](const RunSpec& spec) { return spec.data.kind == DataKind::synthetic; });
  list.advanced(ACCRUE_FIELD(data.token_type), "Token type",
                "Bytes of one token number in the file: uint16 has 2, uint32 has 4, least significant byte first.")
      .one_of(token_types)
      .when([](const RunSpec& spec) { return spec.data.kind == DataKind::tokens; });
  list.add(ACCRUE_FIELD(data.label_columns), "Label columns",
           "Columns of a csv file that hold y: names of its header line, or numbers from 1. Left empty: the last one.")
      .when([](const RunSpec& spec) { return spec.data.kind == DataKind::csv; });
  list.advanced(ACCRUE_FIELD(data.x), "x", "Inputs, one row a sample.").rows("[number, ...]").when(is_inline);
  list.advanced(ACCRUE_FIELD(data.y), "y", "What the model should answer, one row a sample.")
      .rows("[number, ...]")
      .when(is_inline);
  list.advanced(ACCRUE_FIELD(data.sequences), "Sequences",
                "Samples of unequal length; each number is one position of a linear model with one input.")
      .rows("[number, ...]")
      .when(is_inline);
  list.advanced(ACCRUE_FIELD(data.labels), "Labels",
                "The class of each position of data.sequences; -100 is left out of the loss.")
      .rows("[whole number, ...]")
      .when(is_inline);
}

}  // namespace accrue::field_detail
