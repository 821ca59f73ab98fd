// SPDX-License-Identifier: Apache-2.0
// Counting without loading: a text or token file is read once, in blocks, for its hash and its largest token; its size
// gives the samples. For indexed datasets headers and parts are read (indexed_corpus.h, corpus_hash.h). The hash is
// XXH3-128, which runs at memory speed. It detects a changed file; it does not protect against a forger.
#include "accrue/run/facts/data_facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <span>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/base/owned_fd.h"
#include "accrue/run/data/data_split.h"
#include "accrue/run/facts/read_data.h"
#include "accrue/run/facts/sample_places.h"
#include "accrue/run/fields/model_loss.h"
#include "content_hash.h"
#include "corpus_hash.h"
#include "file_state.h"
#include "foreign_file.h"

namespace accrue {

namespace {

/// Result of a scan; with the same state as in an earlier scan, only bytes and mark.
struct FileScan {
  std::string head;
  std::int64_t bytes = 0;
  FileMark mark;
  std::int64_t first_outside = -1;  ///< place of the first token outside the vocabulary
  std::int64_t outside_token = 0;
};

std::int64_t token_at(const char* at, std::int64_t token_bytes) {
  std::uint64_t token = 0;
  for (std::int64_t i = token_bytes; i-- > 0;) token = (token << 8) | static_cast<unsigned char>(at[i]);
  return static_cast<std::int64_t>(token);
}

void check_tokens(FileScan& scan, const char* block, std::int64_t bytes, std::int64_t token_bytes, std::int64_t limit) {
  const bool always_fits = token_bytes < 8 && limit >= (std::int64_t{1} << (8 * token_bytes));
  if (always_fits || scan.first_outside >= 0) return;
  for (std::int64_t at = 0; at + token_bytes <= bytes; at += token_bytes) {
    const std::int64_t token = token_at(block + at, token_bytes);
    if (token < limit) continue;
    scan.first_outside = (scan.bytes + at) / token_bytes;
    scan.outside_token = token;
    return;
  }
}

/// Reads a file to its end. token_bytes = 0 leaves tokens unchecked.
Result<FileScan> scan_file(const std::filesystem::path& path, std::int64_t token_bytes, std::int64_t vocabulary,
                           const FileMark& known) {
  const auto refuse = [&](const std::string& message, const std::string& hint) {
    return fail(ErrorCode::data, message, path.string(), hint);
  };
  if (path.empty()) return fail(ErrorCode::data, "no file is named", "", "Set data.path to the training data.");
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file && errno == ENOENT) return refuse("the file does not exist", "Name an existing file in data.path.");
  if (!file) return refuse("the file cannot be read: " + std::string(std::strerror(errno)), "Check its permissions.");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return refuse(S_ISDIR(status.st_mode) ? "this is a folder" : "this is not a plain file",
                  "Name a file in data.path.");
  FileScan scan;
  const std::string state = state_of(status);
  if (known.state == state) {
    scan.bytes = status.st_size;
    scan.mark = known;
    return scan;
  }
  ContentHash hash;
  constexpr std::size_t block_bytes = std::size_t{1} << 20;  // a multiple of every token size
  const auto block = std::make_unique<char[]>(block_bytes);
  while (true) {
    std::size_t filled = 0;
    while (filled < block_bytes) {
      const ssize_t got = ::read(file.get(), block.get() + filled, block_bytes - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return refuse("the file cannot be read: " + std::string(std::strerror(errno)), "Check the disk.");
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    if (scan.bytes == 0) scan.head.assign(block.get(), std::min(filled, file_head_bytes));
    hash.update(block.get(), filled);
    if (token_bytes > 0) check_tokens(scan, block.get(), static_cast<std::int64_t>(filled), token_bytes, vocabulary);
    scan.bytes += static_cast<std::int64_t>(filled);
    if (filled < block_bytes) break;
  }
  if (scan.bytes == 0) return refuse("the file is empty", "Name a file with training data.");
  scan.mark = {is_settled(path, state) ? state : std::string(), hash.hex()};
  return scan;
}

Result<DataFacts> with_split(DataFacts facts, std::int64_t samples, const DataSpec& spec) {
  if (has_validation_file(spec)) {
    facts.samples = samples;
    return facts;
  }
  const DataSplit split = split_samples(samples, spec.validation_fraction);
  if (split.training < 1)
    return fail(ErrorCode::data,
                "nothing is left to train on: evaluation keeps " + counted(samples, "sample") + " of " +
                    std::to_string(samples),
                "data.validation_fraction", "Lower data.validation_fraction.");
  facts.samples = split.training;
  facts.validation_samples = split.validation;
  facts.validation_shuffled = spec.validation_shuffle && split.validation > 0;
  return facts;
}

/// Attributes an error in the file of data.validation_path to that key.
tl::unexpected<Error> of_validation(Error error) {
  if (!error.where.empty()) error.message = error.where + ": " + error.message;
  error.where = "data.validation_path";
  return tl::unexpected(std::move(error));
}

std::string joined(const std::string& fingerprint, const std::string& validation) {
  ContentHash hash;
  for (const std::string& each : {fingerprint, validation}) hash.update(each.data(), each.size());
  return hash.hex();
}

constexpr std::size_t most_classes = 10000;

/// Counts the labels of a table with a loss of classes. names: words of the labels, if any.
Result<void> count_classes(DataFacts& facts, std::span<const double> labels, const std::vector<std::string>& names,
                           const std::string& where) {
  std::map<std::int64_t, ClassCount> classes;
  const SamplePlaces places(facts);
  const auto count = [&](std::int64_t row, std::int64_t ClassCount::*split) -> Result<void> {
    const double label = labels[static_cast<std::size_t>(row)];
    if (label == static_cast<double>(ignored_label)) return {};
    if (label < 0 || label > 1e9 || label != std::floor(label))
      return fail(
          ErrorCode::data,
          fmt::format("the label of row {} is {}, and a loss of classes needs whole numbers from 0", row + 1, label),
          where, "Number the classes from 0, write them as words, or set model.loss = \"mse\".");
    ++(classes[static_cast<std::int64_t>(label)].*split);
    return {};
  };
  for (std::int64_t i = 0; i < facts.samples; ++i)
    if (auto counted = count(places.training(i), &ClassCount::training); !counted) return counted;
  for (std::int64_t i = 0; i < facts.validation_samples; ++i)
    if (auto counted = count(places.validation(i), &ClassCount::validation); !counted) return counted;
  if (names.empty() && classes.size() > most_classes) return {};
  for (auto& [label, each] : classes) {
    each.label = label;
    each.name = names.empty() ? std::to_string(label) : names[static_cast<std::size_t>(label)];
    facts.classes.push_back(std::move(each));
  }
  return {};
}

// Increase of the token clock per table sample: the terms of its loss.
std::int64_t items_per_sample(const ModelSpec& model, std::int64_t outputs) {
  return model.loss == LossKind::cross_entropy ? 1 : outputs;
}

struct StreamScan {
  FileScan file;
  std::int64_t samples = 0;
};

Result<StreamScan> scan_samples(const RunSpec& spec, const std::filesystem::path& path, std::int64_t token_bytes,
                                const FileMark& known) {
  auto scan = scan_file(path, token_bytes, spec.model.vocabulary, known);
  if (!scan) return tl::unexpected(scan.error());
  if (token_bytes == 1)
    if (auto checked = check_is_text(scan->head, path, "text"); !checked) return tl::unexpected(checked.error());
  const char* unit = token_bytes == 1 ? "byte" : "token";
  if (scan->bytes % token_bytes != 0)
    return fail(ErrorCode::data,
                "the file has " + counted(scan->bytes, "byte") + ", not a whole number of " +
                    std::to_string(token_bytes) + "-byte tokens",
                path.string(), "Check data.token_type.");
  if (scan->first_outside >= 0)
    return fail(
        ErrorCode::data,
        "token " + std::to_string(scan->first_outside) + " is " + std::to_string(scan->outside_token) +
            ", outside the vocabulary of " + std::to_string(spec.model.vocabulary),
        path.string(),
        token_bytes == 1 ? "Set model.vocabulary to 256." : "Raise model.vocabulary, or check data.token_type.");
  const std::int64_t tokens = scan->bytes / token_bytes;
  const std::int64_t samples = stream_samples(tokens, spec.model.context);
  if (samples < 1)
    return fail(ErrorCode::data,
                "the file has " + counted(tokens, unit) + ", too few for one sample of " +
                    std::to_string(spec.model.context + 1),
                path.string(), "Lower model.context, or name a longer file.");
  return StreamScan{*std::move(scan), samples};
}

/// The mark of an earlier scan's i-th file.
FileMark mark_of(const DataFacts& known, std::size_t i) {
  return i < known.files.size() ? known.files[i] : FileMark();
}

Result<DataFacts> scan_stream(const RunSpec& spec, const std::filesystem::path& base_dir, std::int64_t token_bytes,
                              const DataFacts& known) {
  const auto scan = scan_samples(spec, data_path(spec.data, base_dir), token_bytes, mark_of(known, 0));
  if (!scan) return tl::unexpected(scan.error());
  DataFacts facts;
  facts.tokens_per_sample = spec.model.context;
  facts.bytes = scan->file.bytes;
  facts.files.push_back(scan->file.mark);
  facts.fingerprint = scan->file.mark.fingerprint;
  if (has_validation_file(spec.data)) {
    const auto kept = scan_samples(spec, validation_data_path(spec.data, base_dir), token_bytes, mark_of(known, 1));
    if (!kept) return of_validation(kept.error());
    facts.bytes += kept->file.bytes;
    facts.files.push_back(kept->file.mark);
    facts.fingerprint = joined(facts.fingerprint, kept->file.mark.fingerprint);
    facts.validation_samples = kept->samples;
  }
  return with_split(std::move(facts), scan->samples, spec.data);
}

Result<ReadData> read_csv(const RunSpec& spec, const std::filesystem::path& base_dir, const DataFacts& known) {
  const auto path = data_path(spec.data, base_dir), validation = validation_data_path(spec.data, base_dir);
  const auto scan = scan_file(path, 0, 0, mark_of(known, 0));
  if (!scan) return tl::unexpected(scan.error());
  DataFacts facts;
  facts.bytes = scan->bytes;
  facts.files.push_back(scan->mark);
  facts.fingerprint = scan->mark.fingerprint;
  if (!validation.empty()) {
    const auto kept = scan_file(validation, 0, 0, mark_of(known, 1));
    if (!kept) return of_validation(kept.error());
    facts.bytes += kept->bytes;
    facts.files.push_back(kept->mark);
    facts.fingerprint = joined(facts.fingerprint, kept->mark.fingerprint);
  }
  auto table = read_tables(path, validation, spec.data.label_columns);
  if (!table) return tl::unexpected(table.error());
  facts.tokens_per_sample = items_per_sample(spec.model, table->outputs);
  facts.inputs = table->inputs;
  facts.outputs = table->outputs;
  facts.validation_samples = table->validation_rows;
  auto split = with_split(std::move(facts), table->rows - table->validation_rows, spec.data);
  if (!split) return tl::unexpected(split.error());
  const bool of_classes = loss_of(spec.model) == LossKind::cross_entropy;
  if (!of_classes && !table->classes.empty())
    return fail(ErrorCode::data,
                "the labels are words, such as \"" + table->classes.front() + "\", and words are classes", "model.loss",
                "Set model.loss = \"cross_entropy\".");
  if (of_classes && table->outputs == 1)
    if (auto counted = count_classes(*split, table->y, table->classes, path.string()); !counted)
      return tl::unexpected(counted.error());
  return ReadData{*std::move(split), *std::move(table), {}};
}

template <typename Row>
void hash_rows(ContentHash& hash, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const auto size = static_cast<std::uint64_t>(row.size());
    hash.update(&size, sizeof size);
    hash.update(row.data(), row.size() * sizeof(typename Row::value_type));
  }
}

template <typename Rows>
std::string rows_text(const Rows& rows) {
  return counted(static_cast<std::int64_t>(rows.size()), "row");
}

Result<DataFacts> scan_table(const RunSpec& spec) {
  const DataSpec& data = spec.data;
  if (data.x.empty())
    return fail(ErrorCode::data, "there are no samples", "data.x", "Give x and y, or sequences and labels.");
  if (data.x.size() != data.y.size())
    return fail(ErrorCode::data, "x has " + rows_text(data.x) + " and y has " + std::to_string(data.y.size()), "data.y",
                "Give every row of x a row of y.");
  const auto same_width = [](const Matrix& rows) {
    for (const auto& row : rows)
      if (row.empty() || row.size() != rows.front().size()) return false;
    return true;
  };
  for (const auto* rows : {&data.x, &data.y})
    if (!same_width(*rows))
      return fail(ErrorCode::data, "the rows differ in length", rows == &data.x ? "data.x" : "data.y",
                  "Give every row the same number of numbers; use sequences for samples of unequal length.");
  DataFacts facts;
  facts.inputs = static_cast<std::int64_t>(data.x.front().size());
  facts.outputs = static_cast<std::int64_t>(data.y.front().size());
  facts.tokens_per_sample = items_per_sample(spec.model, facts.outputs);
  ContentHash hash;
  hash_rows(hash, data.x);
  hash_rows(hash, data.y);
  facts.fingerprint = hash.hex();
  auto split = with_split(std::move(facts), static_cast<std::int64_t>(data.x.size()), data);
  if (!split || loss_of(spec.model) != LossKind::cross_entropy || split->outputs != 1) return split;
  std::vector<double> labels;
  for (const auto& row : data.y) labels.push_back(row.front());
  // Preflight reports which label is not a class.
  if (!count_classes(*split, labels, {}, "data.y")) split->classes.clear();
  return split;
}

Result<DataFacts> scan_sequences(const RunSpec& spec) {
  const DataSpec& data = spec.data;
  if (data.sequences.size() != data.labels.size())
    return fail(ErrorCode::data,
                "sequences has " + rows_text(data.sequences) + " and labels has " + std::to_string(data.labels.size()),
                "data.labels", "Give every sequence its labels.");
  DataFacts facts;
  facts.inputs = 1;
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    if (data.sequences[i].empty() || data.sequences[i].size() != data.labels[i].size())
      return fail(ErrorCode::data,
                  "row " + std::to_string(i + 1) + " has " +
                      counted(static_cast<std::int64_t>(data.sequences[i].size()), "position") + " and " +
                      counted(static_cast<std::int64_t>(data.labels[i].size()), "label"),
                  "data.labels", "Give every position one label; -100 is ignored.");
    std::int64_t items = 0;
    for (const std::int64_t label : data.labels[i]) {
      items += label != ignored_label;
      facts.outputs = std::max(facts.outputs, label + 1);
    }
    facts.sample_tokens.push_back(items);
  }
  ContentHash hash;
  hash_rows(hash, data.sequences);
  hash_rows(hash, data.labels);
  facts.fingerprint = hash.hex();
  auto split = with_split(std::move(facts), static_cast<std::int64_t>(data.labels.size()), data);
  if (!split) return split;
  const SamplePlaces places(*split);
  std::vector<std::int64_t> trained;
  for (std::int64_t i = 0; i < split->samples; ++i)
    trained.push_back(split->sample_tokens[static_cast<std::size_t>(places.training(i))]);
  split->sample_tokens = std::move(trained);
  const std::int64_t first = split->sample_tokens.front();
  const bool equal = std::ranges::all_of(split->sample_tokens, [first](std::int64_t items) { return items == first; });
  split->tokens_per_sample = equal ? first : 0;
  return split;
}

Result<DataFacts> scan_synthetic(const RunSpec& spec) {
  const bool tokens = is_transformer(spec.model.kind);
  DataFacts facts;
  facts.tokens_per_sample = tokens ? synthetic_items(spec.model) : items_per_sample(spec.model, spec.model.outputs);
  facts.inputs = tokens ? 0 : spec.model.inputs;
  facts.outputs = tokens ? 0 : spec.model.outputs;
  const std::int64_t parameters[] = {tokens,
                                     spec.data.samples,
                                     spec.run.seed,
                                     tokens ? spec.model.context : spec.model.inputs,
                                     tokens ? spec.model.vocabulary : spec.model.outputs,
                                     spec.model.loss == LossKind::cross_entropy};
  ContentHash hash;
  hash.update(parameters, sizeof parameters);
  if (spec.model.kind == ModelKind::bert || spec.model.kind == ModelKind::t5) {
    const std::int64_t sentences[] = {static_cast<std::int64_t>(spec.model.kind), spec.model.tokens_of_decoder()};
    hash.update(sentences, sizeof sentences);
  }
  facts.fingerprint = hash.hex();
  return with_split(std::move(facts), spec.data.samples, spec.data);
}

Result<ReadData> read_indexed(const RunSpec& spec, const std::filesystem::path& base_dir, const DataFacts& known) {
  auto corpus = plan_corpus(spec, base_dir);
  if (!corpus) return tl::unexpected(corpus.error());
  std::vector<std::filesystem::path> files;
  for (const auto* names : {&spec.data.paths, &spec.data.validation_paths})
    for (const std::string& name : *names)
      for (auto& file : files_of_dataset(base_dir / name)) files.push_back(std::move(file));
  auto hashed = hash_files(files, mark_of(known, 0));
  if (!hashed) return tl::unexpected(hashed.error());
  DataFacts facts;
  facts.samples = corpus->training.samples;
  facts.validation_samples = corpus->validation.samples;
  facts.tokens_per_sample = spec.model.context;
  facts.bytes = hashed->bytes;
  facts.fingerprint = hashed->mark.fingerprint;
  facts.files.push_back(std::move(hashed->mark));
  return ReadData{std::move(facts), {}, *std::move(corpus)};
}

}  // namespace

std::string class_names(const DataFacts& facts) {
  return joined(facts.classes, ", ",
                [](const ClassCount& each) { return fmt::format("{} = {}", each.name, each.label); });
}

std::int64_t synthetic_spans(const ModelSpec& model) {
  const std::int64_t wanted = std::max<std::int64_t>(1, model.context / 20);  // 15 % of the tokens
  const std::int64_t fitting = std::min((model.tokens_of_decoder() - 1) / (synthetic_span + 1), model.vocabulary / 4);
  return std::max<std::int64_t>(1, std::min(wanted, fitting));
}

std::int64_t synthetic_special_tokens(const ModelSpec& model) {
  if (model.kind == ModelKind::bert) return 4;
  return model.kind == ModelKind::t5 ? 3 + synthetic_spans(model) : 0;
}

std::int64_t synthetic_items(const ModelSpec& model) {
  if (model.kind == ModelKind::bert) return std::max<std::int64_t>(1, model.context * 3 / 20);
  return model.kind == ModelKind::t5 ? synthetic_spans(model) * (synthetic_span + 1) + 1 : model.context;
}

std::filesystem::path data_path(const DataSpec& spec, const std::filesystem::path& base_dir) {
  return spec.path.empty() ? std::filesystem::path() : base_dir / spec.path;
}

std::filesystem::path validation_data_path(const DataSpec& spec, const std::filesystem::path& base_dir) {
  return has_validation_file(spec) ? base_dir / spec.validation_path : std::filesystem::path();
}

Result<ReadData> read_data(const RunSpec& spec, const std::filesystem::path& base_dir, const DataFacts& known) {
  const auto alone = [](DataFacts facts) { return ReadData{std::move(facts), {}, {}}; };
  switch (spec.data.kind) {
    case DataKind::text:
      return scan_stream(spec, base_dir, 1, known).map(alone);
    case DataKind::tokens:
      return scan_stream(spec, base_dir, spec.data.token_type == "uint32" ? 4 : 2, known).map(alone);
    case DataKind::indexed:
      return read_indexed(spec, base_dir, known);
    case DataKind::csv:
      return read_csv(spec, base_dir, known);
    case DataKind::inline_:
      return (spec.data.sequences.empty() ? scan_table(spec) : scan_sequences(spec)).map(alone);
    case DataKind::synthetic:
      return scan_synthetic(spec).map(alone);
  }
  return fail(ErrorCode::internal, "unknown kind of data", "data.kind");
}

Result<DataFacts> scan_data(const RunSpec& spec, const std::filesystem::path& base_dir, const DataFacts& known) {
  return read_data(spec, base_dir, known).map([](ReadData read) { return std::move(read.facts); });
}

}  // namespace accrue
