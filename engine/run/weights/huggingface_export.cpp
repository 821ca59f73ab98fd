// SPDX-License-Identifier: Apache-2.0
// One tensor of ours is in memory at a time, beside one of theirs.
#include "accrue/run/weights/huggingface_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "accrue/run/fields/block_form.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/weights/huggingface_config.h"
#include "accrue/run/weights/start_weights.h"
#include "json_text.h"
#include "posix_file.h"
#include "text_files.h"

namespace accrue {

namespace {

namespace fs = std::filesystem;

/// One of their tensors, and the parameter of ours that holds it.
struct Tensor {
  NeededTensor needed;
  std::string ours;
  std::uint64_t bytes = 0;
};

/// Tensors that one file holds.
using Shard = std::vector<Tensor>;

class Exporter {
 public:
  Exporter(ModelSpec model, ArchiveFile weights, TextFiles text, fs::path folder, const std::function<bool()>& go_on,
           std::uint64_t most_file_bytes)
      : model_(std::move(model)),
        names_(block_form(model_).norm == NormKind::layer ? WeightNames::gpt2 : WeightNames::llama),
        weights_(std::move(weights)),
        text_(std::move(text)),
        folder_(std::move(folder)),
        go_on_(go_on),
        most_file_bytes_(most_file_bytes) {}

  /// Errors (config, data): what is known before anything is written.
  Result<void> check() {
    auto config = write_huggingface_config(model_);
    if (!config) return tl::unexpected(config.error());
    config_ = std::move(*config);
    return find_ours();
  }

  /// Writes the files to a folder that is there. On an error those that it wrote are removed.
  Result<HuggingFaceExport> write() {
    if (auto written = write_files(); !written) {
      std::error_code ignored;
      for (const fs::path& file : result_.files) fs::remove(file, ignored);
      return tl::unexpected(written.error());
    }
    return std::move(result_);
  }

 private:
  Result<void> write_files() {
    const std::vector<Shard> shards = cut();
    Json map = Json::object();
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shards.size() == 1
                                   ? "model.safetensors"
                                   : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
      if (auto written = write_shard(shards[i], folder_ / name); !written) return written;
      for (const Tensor& each : shards[i]) map[each.needed.name] = name;
    }
    if (shards.size() > 1) {
      const Json index = {{"metadata", {{"total_size", result_.bytes}}}, {"weight_map", std::move(map)}};
      if (auto written = text_file("model.safetensors.index.json", json_text(index, 2) + "\n"); !written)
        return written;
    }
    return write_text_files();
  }

  /// Writes config.json with the tokens that begin and end a text, what generate() needs, and the tokenizer.
  Result<void> write_text_files() {
    Json model = parse_json(config_);
    model.update(text_.tokens);
    if (auto written = text_file("config.json", json_text(model, 2) + "\n"); !written) return written;
    bool generates = false;
    for (const TextFiles::Copy& each : text_.copies) {
      const auto bytes = read_file(each.from, std::size_t{1} << 30);
      if (!bytes) return tl::unexpected(bytes.error());
      if (auto written = text_file(each.name, *bytes); !written) return written;
      generates = generates || each.name == generation_name;
    }
    result_.tokenizer = text_.summary;
    if (generates) return {};
    const Json known = text_.tokens.empty() ? Json{{"_from_model_config", true}} : text_.tokens;
    return text_file(generation_name, json_text(known, 2) + "\n");
  }

  Result<void> find_ours() {
    for (const ArchiveEntry& each : weights_.header.entries) entries_[each.name] = &each;
    for (const ParameterShape& parameter : parameter_shapes(model_)) {
      const auto entry = entries_.find(parameter.name);
      if (entry == entries_.end() || entry->second->shape != stored_shape(parameter))
        return fail(ErrorCode::data, "the final weights are not those of the run's model: tensor " + parameter.name,
                    weights_.path);
    }
    return {};
  }

  /// Rows that pad a table are not part of final weights.
  std::vector<std::int64_t> stored_shape(const ParameterShape& parameter) const {
    std::vector<std::int64_t> shape = parameter.shape;
    if (parameter.by_token) shape.front() = std::min(shape.front(), model_.vocabulary);
    return shape;
  }

  std::vector<Shard> cut() const {
    std::map<std::string, std::string> owner;
    for (const ParameterShape& parameter : parameter_shapes(model_))
      for (const WeightPiece& piece : weight_pieces(names_, model_, parameter)) owner[piece.tensor] = parameter.name;
    std::vector<Shard> shards(1);
    std::uint64_t size = 0;
    for (NeededTensor& needed : needed_tensors(names_, model_)) {
      Tensor tensor{.needed = {}, .ours = owner[needed.name]};
      tensor.needed = std::move(needed);
      tensor.bytes = archive_dtype_bytes(entries_.at(tensor.ours)->dtype);
      for (const std::int64_t dim : tensor.needed.shape) tensor.bytes *= static_cast<std::uint64_t>(dim);
      if (!shards.back().empty() && size + tensor.bytes > most_file_bytes_) {
        shards.emplace_back();
        size = 0;
      }
      size += tensor.bytes;
      shards.back().push_back(std::move(tensor));
    }
    return shards;
  }

  Result<void> write_shard(const Shard& shard, const fs::path& file) {
    ArchiveHeader header{.entries = {}, .metadata = {{"format", "pt"}}};
    std::uint64_t at = 0;
    for (const Tensor& each : shard) {
      header.entries.push_back(
          {each.needed.name, entries_.at(each.ours)->dtype, each.needed.shape, at, at + each.bytes});
      at += each.bytes;
    }
    const std::string json = format_archive_header(header);
    const std::uint64_t length = json.size();
    auto part = create_part(file, shared_mode);
    if (!part) return tl::unexpected(part.error());
    int error = write_all(part->get(), {reinterpret_cast<const char*>(&length), sizeof length});
    if (error == 0) error = write_all(part->get(), json);
    for (const Tensor& each : shard) {
      if (error != 0) break;
      const auto values = next_values(each);
      if (!values) {
        std::error_code ignored;
        fs::remove(part_of(file), ignored);
        return tl::unexpected(values.error());
      }
      error = write_all(part->get(), *values);
    }
    if (auto placed = place_part(file, std::move(*part), error); !placed) return placed;
    result_.files.push_back(file);
    result_.bytes += at;
    return {};
  }

  Result<std::string> next_values(const Tensor& tensor) {
    if (go_on_ && !go_on_()) return fail(ErrorCode::cancelled, "the export was given up");
    return values_of(tensor);
  }

  /// The bytes of one of their tensors, from the rows of ours.
  Result<std::string> values_of(const Tensor& tensor) {
    const ArchiveEntry& entry = *entries_.at(tensor.ours);
    if (held_name_ != tensor.ours) {
      held_.resize(entry.end - entry.begin);
      if (auto read = weights_.read(entry, held_.data()); !read) return tl::unexpected(read.error());
      held_name_ = tensor.ours;
    }
    const std::size_t number = archive_dtype_bytes(entry.dtype);
    const std::size_t columns = entry.shape.size() > 1 ? static_cast<std::size_t>(entry.shape[1]) : 1;
    const std::size_t row_bytes = columns * number;
    std::string values(tensor.bytes, '\0');
    for (const ParameterShape& parameter : parameter_shapes(model_)) {
      if (parameter.name != tensor.ours) continue;
      for (const WeightPiece& piece : weight_pieces(names_, model_, parameter)) {
        if (piece.tensor != tensor.needed.name) continue;
        const auto row = static_cast<std::size_t>(piece.row), rows = static_cast<std::size_t>(piece.rows);
        const auto from = static_cast<std::size_t>(piece.from);
        if (!piece.transposed) {
          std::memcpy(values.data() + from * row_bytes, held_.data() + row * row_bytes, rows * row_bytes);
          continue;
        }
        const std::size_t their_row = static_cast<std::size_t>(tensor.needed.shape[1]);
        for (std::size_t r = 0; r < rows; ++r)
          for (std::size_t c = 0; c < columns; ++c)
            std::memcpy(values.data() + (c * their_row + from + r) * number,
                        held_.data() + (row + r) * row_bytes + c * number, number);
      }
    }
    return values;
  }

  Result<void> text_file(const std::string& name, const std::string& text) {
    if (auto written = write_file(folder_ / name, text, shared_mode); !written) return written;
    result_.files.push_back(folder_ / name);
    return {};
  }

  ModelSpec model_;
  WeightNames names_;
  ArchiveFile weights_;
  TextFiles text_;
  fs::path folder_;
  const std::function<bool()>& go_on_;
  std::uint64_t most_file_bytes_;
  std::map<std::string, const ArchiveEntry*> entries_;
  std::string config_;
  std::string held_name_;  ///< the parameter whose bytes are in held_
  std::string held_;
  HuggingFaceExport result_;
};

}  // namespace

Result<HuggingFaceExport> export_huggingface(const fs::path& run_dir, const fs::path& out,
                                             const std::function<bool()>& go_on, std::uint64_t most_file_bytes) {
  std::error_code error;
  const bool is_ours = !fs::exists(out, error);
  if (!is_ours && !(fs::is_directory(out, error) && fs::is_empty(out, error)))
    return fail(ErrorCode::config, fs::is_directory(out, error) ? "the folder is not empty" : "this is no folder",
                out.string(), "Choose a new or an empty folder.");
  const SpecReading reading = read_spec(run_dir / "spec.toml");
  if (!reading.ok()) return fail(ErrorCode::config, reading.findings.front().text(), run_dir.string());
  const fs::path final_weights = run_dir / "final" / "model.safetensors";
  if (!fs::exists(final_weights, error))
    return fail(ErrorCode::data, "the run has no final weights", final_weights.string(),
                "They are written when a run finishes: resume it to its end.");
  auto weights = ArchiveFile::open(final_weights);
  if (!weights) return tl::unexpected(weights.error());
  Exporter exporter(reading.spec.model, std::move(*weights), text_files_of(reading.spec, run_dir), out, go_on,
                    most_file_bytes);
  if (auto checked = exporter.check(); !checked) return tl::unexpected(checked.error());
  fs::create_directories(out, error);
  if (error) return fail(ErrorCode::disk, "the folder cannot be made: " + error.message(), out.string());
  auto written = exporter.write();
  if (!written && is_ours) fs::remove(out, error);
  return written;
}

}  // namespace accrue
