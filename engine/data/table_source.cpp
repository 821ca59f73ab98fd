// SPDX-License-Identifier: Apache-2.0
// Small data: a batch is one gather of rows. Tables are float32 (float64 for a float64 model); the model itself casts
// to a narrower type, so its loss uses unrounded targets.
#include "data/table_source.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/data/data_split.h"
#include "accrue/run/facts/sample_places.h"

namespace accrue {
namespace {

tl::unexpected<Error> data_error(std::string what, std::string where, std::string hint) {
  return fail(ErrorCode::data, std::move(what), std::move(where), std::move(hint));
}

std::string row_name(const char* key, std::size_t row) {
  return std::string(key) + "[" + std::to_string(row) + "]";
}

at::ScalarType table_type(const ModelSpec& model) {
  return model.dtype == Dtype::float64 ? at::kDouble : at::kFloat;
}

Result<at::Tensor> matrix_tensor(const Matrix& rows, const char* key) {
  const std::size_t width = rows.empty() ? 0 : rows.front().size();
  at::Tensor values =
      at::empty({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(width)}, at::kDouble);
  auto* at = values.mutable_data_ptr<double>();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].size() != width)
      return data_error(
          "has " + std::to_string(rows[r].size()) + " numbers where the first row has " + std::to_string(width),
          row_name(key, r), "Give every row the same length, or use sequences and labels.");
    at = std::copy(rows[r].begin(), rows[r].end(), at);
  }
  return values;
}

Result<void> check_widths(const Table& table, const ModelSpec& model, bool labels) {
  const std::int64_t outputs = labels ? 1 : model.outputs;
  if (table.x.size(1) != model.inputs)
    return data_error("the data has " + std::to_string(table.x.size(1)) + " input columns, the model takes " +
                          std::to_string(model.inputs),
                      "model.inputs", "Set model.inputs to " + std::to_string(table.x.size(1)) + ".");
  if (table.y.size(1) != outputs)
    return data_error("the data has " + std::to_string(table.y.size(1)) + " target columns where " +
                          std::to_string(outputs) + " belong",
                      labels ? "data.label_columns" : "model.outputs",
                      labels ? "A cross-entropy label is one column."
                             : "Set model.outputs to " + std::to_string(table.y.size(1)) + ".");
  return {};
}

Result<void> check_label(double label, std::int64_t classes, std::string where) {
  const bool whole = std::floor(label) == label;
  if (whole && (label == ignored_label || (label >= 0 && label < static_cast<double>(classes)))) return {};
  return data_error("label " + std::to_string(label) + " is not one of 0 to " + std::to_string(classes - 1) + ", nor " +
                        std::to_string(ignored_label) + " (ignored)",
                    std::move(where), "Correct the label, or raise model.outputs.");
}

at::Tensor index_tensor(std::span<const std::int64_t> samples, const SamplePlaces& places, Split split) {
  at::Tensor index = at::empty({static_cast<std::int64_t>(samples.size())}, at::kLong);
  auto* at = index.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t sample : samples) *at++ = places.of(split == Split::train, sample);
  return index;
}

std::int64_t count_labels(const at::Tensor& targets) {
  const auto* at = targets.const_data_ptr<std::int64_t>();
  return std::count_if(at, at + targets.numel(), [](std::int64_t label) { return label != ignored_label; });
}

class TableSource final : public DataSource {
 public:
  TableSource(Table table, const DataFacts& facts, bool labels)
      : table_(std::move(table)),
        train_(facts.samples),
        validation_(facts.validation_samples),
        places_(facts),
        labels_(labels) {}

  std::int64_t size(Split split) const override { return split == Split::train ? train_ : validation_; }

  Batch batch(Split split, std::span<const std::int64_t> samples) override {
    const at::Tensor index = index_tensor(samples, places_, split);
    Batch batch{.inputs = at::index_select(table_.x, 0, index),
                .targets = at::index_select(table_.y, 0, index),
                .samples = static_cast<std::int64_t>(samples.size())};
    if (labels_) batch.inputs = batch.inputs.unsqueeze(1);
    batch.items = labels_ ? count_labels(batch.targets) : batch.targets.numel();
    return batch;
  }

 private:
  Table table_;
  std::int64_t train_;
  std::int64_t validation_;
  SamplePlaces places_;
  bool labels_;
};

class RaggedSource final : public DataSource {
 public:
  RaggedSource(const RunSpec& spec, const DataFacts& facts)
      : sequences_(spec.data.sequences),
        labels_(spec.data.labels),
        type_(table_type(spec.model)),
        train_(facts.samples),
        validation_(facts.validation_samples),
        places_(facts) {}

  std::int64_t size(Split split) const override { return split == Split::train ? train_ : validation_; }

  Batch batch(Split split, std::span<const std::int64_t> samples) override {
    const auto place = [&](std::int64_t sample) { return places_.of(split == Split::train, sample); };
    std::size_t longest = 0;
    for (const std::int64_t s : samples) longest = std::max(longest, sequence(place(s)).size());
    const auto rows = static_cast<std::int64_t>(samples.size());
    const auto length = static_cast<std::int64_t>(longest);
    at::Tensor inputs = at::zeros({rows, length, 1}, at::kDouble);
    Batch batch{.targets = at::full({rows, length}, ignored_label, at::kLong), .samples = rows};
    for (std::int64_t b = 0; b < rows; ++b) {
      const std::int64_t sample = place(samples[static_cast<std::size_t>(b)]);
      const auto& labels = labels_[static_cast<std::size_t>(sample)];
      std::copy(sequence(sample).begin(), sequence(sample).end(), inputs.mutable_data_ptr<double>() + b * length);
      std::copy(labels.begin(), labels.end(), batch.targets.mutable_data_ptr<std::int64_t>() + b * length);
    }
    batch.inputs = inputs.to(type_);
    batch.items = count_labels(batch.targets);
    return batch;
  }

 private:
  const std::vector<double>& sequence(std::int64_t sample) const {
    return sequences_[static_cast<std::size_t>(sample)];
  }

  Matrix sequences_;
  std::vector<std::vector<std::int64_t>> labels_;
  at::ScalarType type_;
  std::int64_t train_;
  std::int64_t validation_;
  SamplePlaces places_;
};

Result<void> check_rows(std::int64_t rows, const DataFacts& facts) {
  if (rows >= facts.samples + facts.validation_samples) return {};
  return data_error("holds " + std::to_string(rows) + " samples where the plan counts " +
                        std::to_string(facts.samples + facts.validation_samples),
                    "data", "The data changed since the plan was made: restore it, or start a new run.");
}

}  // namespace

at::Tensor largest_output(const at::Tensor& y) {
  return at::argmax(y, 1, /*keepdim=*/true).to(at::kDouble);
}

Result<Table> inline_table(const RunSpec& spec) {
  auto x = matrix_tensor(spec.data.x, "data.x");
  if (!x) return tl::unexpected(x.error());
  auto y = matrix_tensor(spec.data.y, "data.y");
  if (!y) return tl::unexpected(y.error());
  if (x->size(0) != y->size(0))
    return data_error("data.x has " + std::to_string(x->size(0)) + " rows, data.y " + std::to_string(y->size(0)),
                      "data", "Give each row of x its row of y.");
  return Table{std::move(*x), std::move(*y)};
}

Result<std::unique_ptr<DataSource>> make_table_source(Table table, const ModelSpec& model, const DataFacts& facts) {
  const bool labels = model.loss == LossKind::cross_entropy;
  if (auto checked = check_rows(table.x.size(0), facts); !checked) return tl::unexpected(checked.error());
  if (auto checked = check_widths(table, model, labels); !checked) return tl::unexpected(checked.error());
  const auto* y = table.y.const_data_ptr<double>();
  for (std::int64_t row = 0; labels && row < table.y.size(0); ++row)
    if (auto checked = check_label(y[row], model.outputs, "sample " + std::to_string(row)); !checked)
      return tl::unexpected(checked.error());
  table.x = table.x.to(table_type(model));
  table.y = table.y.to(labels ? at::kLong : table_type(model));
  return std::make_unique<TableSource>(std::move(table), facts, labels);
}

Result<std::unique_ptr<DataSource>> make_ragged_source(const RunSpec& spec, const DataFacts& facts) {
  const DataSpec& data = spec.data;
  if (auto checked = check_rows(static_cast<std::int64_t>(data.sequences.size()), facts); !checked)
    return tl::unexpected(checked.error());
  if (data.sequences.size() != data.labels.size())
    return data_error("data.sequences has " + std::to_string(data.sequences.size()) + " rows, data.labels " +
                          std::to_string(data.labels.size()),
                      "data", "Give each sequence its labels.");
  if (spec.model.loss != LossKind::cross_entropy)
    return data_error("sequences with labels need a loss of classes", "model.loss",
                      "Set model.loss = \"cross_entropy\".");
  for (std::size_t row = 0; row < data.sequences.size(); ++row) {
    if (data.sequences[row].size() != data.labels[row].size())
      return data_error("has " + std::to_string(data.labels[row].size()) + " labels for " +
                            std::to_string(data.sequences[row].size()) + " positions",
                        row_name("data.labels", row), "Give each position one label (-100 is ignored).");
    for (const std::int64_t label : data.labels[row])
      if (auto checked = check_label(static_cast<double>(label), spec.model.outputs, row_name("data.labels", row));
          !checked)
        return tl::unexpected(checked.error());
  }
  return std::make_unique<RaggedSource>(spec, facts);
}

}  // namespace accrue
