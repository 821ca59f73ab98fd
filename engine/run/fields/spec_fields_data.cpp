// SPDX-License-Identifier: Apache-2.0
// Rows of [data].
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

constexpr std::string_view token_types[] = {"uint16", "uint32"};

bool reads_file(const RunSpec& spec) {
  return is_file(spec.data.kind);
}
bool is_inline(const RunSpec& spec) {
  return spec.data.kind == DataKind::inline_;
}

bool is_indexed(const RunSpec& spec) {
  return spec.data.kind == DataKind::indexed;
}
bool is_indexed_gpt(const RunSpec& spec) {
  return is_indexed(spec) && is_decoder_only(spec.model.kind);
}
bool is_masked(const RunSpec& spec) {
  return is_indexed(spec) && (spec.model.kind == ModelKind::bert || spec.model.kind == ModelKind::t5);
}

/// Largest seed of all samplers.
constexpr double most_seed = 2147483646;

void add_indexed_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(data.paths), "Datasets",
           "Indexed datasets, each the path of its .bin and .idx files without their endings, as accrue-run data build "
           "makes them; relative to the folder of the spec.")
      .when(is_indexed)
      .elsewhere("Megatron-LM: --data-path, blend");
  list.add(ACCRUE_FIELD(data.weights), "Weights",
           "The share of each dataset in the samples, of any sum. Left empty: every sample of every dataset once.")
      .when([](const RunSpec& spec) { return is_indexed(spec) && spec.data.paths.size() > 1; })
      .elsewhere("Megatron-LM: --data-path");
  list.add(ACCRUE_FIELD(data.split), "Split",
           "One to three proportions: of each dataset's sequences (of its documents for a BERT or a T5) for training, "
           "evaluation and a test that no run reads.")
      .when([](const RunSpec& spec) { return is_indexed(spec) && spec.data.validation_paths.empty(); })
      .elsewhere("Megatron-LM: --split; Accelerate: splits_string");
  list.add(ACCRUE_FIELD(data.validation_paths), "Evaluation datasets",
           "Datasets to evaluate on, in place of a split: then the others are trained on as a whole.")
      .when(is_indexed)
      .elsewhere("Megatron-LM: --valid-data-path");
  list.advanced(ACCRUE_FIELD(data.validation_weights), "Evaluation weights", "The share of each evaluation dataset.")
      .when([](const RunSpec& spec) { return is_indexed(spec) && spec.data.validation_paths.size() > 1; });
  list.add(ACCRUE_FIELD(data.seed), "Order's seed", "The order of the samples follows from it. Left out: run.seed.")
      .range(0, most_seed)
      .when(is_indexed)
      .elsewhere("Megatron-LM: --seed, random_seed");
  list.advanced(ACCRUE_FIELD(data.sampler), "Sampler",
                "single: the samples in the order of their index. cyclic: each epoch shuffles the whole index again, "
                "by torch.randperm with the epoch as seed, and leaves out what fills no batch of all replicas.")
      .when(is_indexed)
      .elsewhere("Megatron-LM: --dataloader-type");
  list.advanced(ACCRUE_FIELD(data.sharding), "Sharding",
                "Whether each replica keeps to its own part of the samples; else they take turns in one order.")
      .when([](const RunSpec& spec) { return is_indexed(spec) && spec.data.sampler == SamplerKind::cyclic; })
      .elsewhere("Megatron-LM: --no-data-sharding");
  list.advanced(
          ACCRUE_FIELD(data.cache), "Cache",
          "The folder that keeps the indices. Left empty: a folder cache in one named after the dataset, beside it.")
      .when(is_indexed)
      .elsewhere("Megatron-LM: --data-cache-path");
  list.advanced(ACCRUE_FIELD(data.end_of_document), "End of document",
                "The token that ends a document, for the three keys that follow.")
      .range(0, 2147483647)
      .when(is_indexed_gpt)
      .elsewhere("Megatron-LM: eod");
  list.advanced(ACCRUE_FIELD(data.mask_end_of_document), "No loss after a document",
                "Leaves what follows the end of a document out of the loss: it cannot be predicted.")
      .when(is_indexed_gpt)
      .elsewhere("Megatron-LM: --eod-mask-loss");
  list.advanced(ACCRUE_FIELD(data.reset_positions), "Positions begin again",
                "Each document of a sample has positions of its own, from 0.")
      .when(is_indexed_gpt)
      .elsewhere("Megatron-LM: --reset-position-ids");
  list.advanced(ACCRUE_FIELD(data.reset_attention), "Attention begins again",
                "No token sees one of an earlier document. Attention then runs on plain operators.")
      .when(is_indexed_gpt)
      .elsewhere("Megatron-LM: --reset-attention-mask");
  list.add(ACCRUE_FIELD(data.mask_probability), "Masked",
           "Share of the tokens that are masked, for the model to predict.")
      .range(0.001, 0.99)
      .when(is_masked)
      .elsewhere("Megatron-LM: --mask-prob");
  list.add(ACCRUE_FIELD(data.short_sequence_probability), "Shorter samples",
           "Share of the samples that are cut at a random length below model.context.")
      .range(0, 1)
      .when(is_masked)
      .elsewhere("Megatron-LM: --short-seq-prob");
  list.advanced(ACCRUE_FIELD(data.consumed_samples), "Consumed samples",
                "How many samples of training, evaluation and test earlier runs have read: they are passed over.")
      .range(0, 1e15, "samples")
      .when(is_indexed)
      .elsewhere("Megatron-LM: --consumed-train-samples; Accelerate: consumed_samples");
}

}  // namespace

void add_data_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(data.kind), "Data",
           "text: a file, each byte a token. tokens: a flat file of token numbers. csv: a table of numbers, whose "
           "label may be a word. inline: "
           "numbers in this spec. synthetic: made from the seed. indexed: token sequences with an index, blended and "
           "split as Megatron-LM does.");
  list.add(ACCRUE_FIELD(data.path), "File", "The training data; a relative path starts at the folder of the spec.")
      .when(reads_file)
      .elsewhere("transformers: train_file");
  add_indexed_fields(list);
  list.add(ACCRUE_FIELD(data.shuffle), "Shuffle",
           "Whether each epoch visits the samples in an order of its own, drawn from the seed.")
      .when([](const RunSpec& spec) { return !is_indexed(spec); })
      .elsewhere("PyTorch: shuffle");
  list.add(ACCRUE_FIELD(data.validation_fraction), "Kept for evaluation",
           "Share of the samples, taken from the end of the data and rounded up, that is never trained on.")
      .range(0, 0.9)
      .when([](const RunSpec& spec) { return !is_indexed(spec) && !has_validation_file(spec.data); })
      .elsewhere("Keras: validation_split; transformers: validation_split_percentage");
  list.add(
          ACCRUE_FIELD(data.validation_shuffle), "Drawn for evaluation",
          "Whether the samples kept for evaluation are drawn from all the data, the same for every seed; else they are "
          "the last ones, which in a sorted table are of one class.")
      .when([](const RunSpec& spec) {
        return !is_indexed(spec) && spec.data.validation_fraction > 0 && !has_validation_file(spec.data);
      })
      .elsewhere("scikit-learn: train_test_split(shuffle)");
  list.add(ACCRUE_FIELD(data.validation_path), "File for evaluation",
           "A file of the same kind to evaluate on; data.path is then trained on as a whole. A relative path starts at "
           "the folder of the spec.")
      .when(reads_file)
      .elsewhere("transformers: validation_file");
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
