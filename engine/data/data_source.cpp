// SPDX-License-Identifier: Apache-2.0
// Opens the data that scan_data described. Every rank scans again and compares with the plan. A file that changed
// between plan and start, or between start and resume, is refused before a sample is read. Only a file that is not the
// supervisor's own, unchanged, is hashed again: a copy on another host, or one that is being or was just written.
#include "accrue/data/data_source.h"

#include <ATen/ops/from_blob.h>

#include <string>
#include <utility>
#include <vector>

#include "accrue/run/facts/read_data.h"
#include "data/indexed_source.h"
#include "data/synthetic.h"
#include "data/synthetic_sentences.h"
#include "data/table_source.h"
#include "data/token_windows.h"

namespace accrue {
namespace {

Result<ReadData> read_unchanged(const RunSpec& spec, const DataFacts& facts, const std::filesystem::path& base_dir) {
  auto read = read_data(spec, base_dir, facts);
  if (!read) return read;
  const DataFacts& now = read->facts;
  const bool same = now.fingerprint == facts.fingerprint && now.samples == facts.samples &&
                    now.validation_samples == facts.validation_samples;
  if (same) return read;
  const std::string where = spec.data.path.empty() ? "data" : data_path(spec.data, base_dir).string();
  return fail(ErrorCode::data,
              "the data changed since the run began: its content hash is " + now.fingerprint +
                  ", the run's record says " + facts.fingerprint,
              where, "Restore the file, or start a new run.");
}

Result<std::unique_ptr<DataSource>> open_tokens(const RunSpec& spec, const DataFacts& facts,
                                                const std::filesystem::path& base_dir, std::int64_t token_bytes) {
  const bool apart = has_validation_file(spec.data);
  auto store = open_token_file(data_path(spec.data, base_dir), token_bytes,
                               facts.samples + (apart ? 0 : facts.validation_samples), spec.model);
  if (!store) return tl::unexpected(store.error());
  if (apart) {
    auto kept =
        open_token_file(validation_data_path(spec.data, base_dir), token_bytes, facts.validation_samples, spec.model);
    if (!kept) return tl::unexpected(kept.error());
    store = joined_tokens(std::move(*store), facts.samples, std::move(*kept));
  }
  return make_token_windows(std::move(*store), spec.model.context, facts);
}

at::Tensor copied(std::vector<double>& values, std::int64_t rows, std::int64_t columns) {
  return at::from_blob(values.data(), {rows, columns}, at::kDouble).clone();
}

Result<std::unique_ptr<DataSource>> open_csv(const RunSpec& spec, const DataFacts& facts, CsvTable csv) {
  Table table{copied(csv.x, csv.rows, csv.inputs), copied(csv.y, csv.rows, csv.outputs)};
  return make_table_source(std::move(table), spec.model, facts);
}

Result<std::unique_ptr<DataSource>> open_inline(const RunSpec& spec, const DataFacts& facts) {
  if (!spec.data.sequences.empty()) return make_ragged_source(spec, facts);
  auto table = inline_table(spec);
  if (!table) return tl::unexpected(table.error());
  return make_table_source(std::move(*table), spec.model, facts);
}

Result<std::unique_ptr<DataSource>> open_synthetic(const RunSpec& spec, const DataFacts& facts) {
  const auto seed = static_cast<std::uint64_t>(spec.run.seed);
  if (is_decoder_only(spec.model.kind))
    return make_token_windows(make_markov_language(seed, spec.model.vocabulary), spec.model.context, facts);
  if (is_transformer(spec.model.kind)) return make_synthetic_sentences(seed, spec.model, facts);
  return make_table_source(make_linear_teacher(seed, facts.samples + facts.validation_samples, spec.model), spec.model,
                           facts);
}

}  // namespace

Result<std::unique_ptr<DataSource>> open_data(const RunSpec& spec, const DataFacts& facts,
                                              const std::filesystem::path& base_dir) {
  auto read = read_unchanged(spec, facts, base_dir);
  if (!read) return tl::unexpected(read.error());
  switch (spec.data.kind) {
    case DataKind::text:
      return open_tokens(spec, facts, base_dir, 1);
    case DataKind::tokens:
      return open_tokens(spec, facts, base_dir, spec.data.token_type == "uint32" ? 4 : 2);
    case DataKind::indexed:
      return make_indexed_source(spec, read->corpus, base_dir);
    case DataKind::csv:
      return open_csv(spec, facts, std::move(read->table));
    case DataKind::inline_:
      return open_inline(spec, facts);
    case DataKind::synthetic:
      return open_synthetic(spec, facts);
  }
  return fail(ErrorCode::data, "unknown kind of data", "data.kind");
}

}  // namespace accrue
