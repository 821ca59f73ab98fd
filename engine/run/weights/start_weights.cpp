// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/weights/start_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "accrue/run/fields/block_form.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/weights/huggingface_config.h"
#include "accrue/run/weights/saved_run.h"
#include "corpus_hash.h"
#include "json_text.h"

namespace accrue {

namespace {

namespace fs = std::filesystem;

/// What the weights say of a model, whoever wrote them.
struct SavedModel {
  ModelSpec model;
  std::vector<std::string> keys;
  std::int64_t positions = 0;  ///< 0: any number
  std::optional<std::int64_t> window;
};

/// Keys of [model] that are a choice of each training, not a property of the weights.
bool is_free(std::string_view key) {
  constexpr std::string_view free[] = {"model.init",    "model.values",  "model.weights",
                                       "model.dropout", "model.context", "model.label_smoothing",
                                       "model.dtype",   "model.loss",    "model.decoder_context"};
  return std::ranges::find(free, key) != std::end(free);
}

Result<SavedModel> model_of(const StartWeights& weights) {
  SavedModel saved;
  if (weights.names != WeightNames::accrue) {
    const std::string file = (weights.folder.folder / "config.json").string();
    auto config = read_huggingface_config(weights.folder.config, file);
    if (!config) return tl::unexpected(config.error());
    return SavedModel{std::move(config->model), std::move(config->keys), config->positions, config->window};
  }
  const fs::path file = run_of(weights.folder.folder) / "spec.toml";
  const SpecReading reading = read_spec(file);
  if (!reading.ok()) return fail(ErrorCode::data, reading.findings.front().text(), file.string());
  saved.model = reading.spec.model;
  for (const SpecField& field : spec_fields())
    if (field.section() == "model" && !is_free(field.key)) saved.keys.emplace_back(field.key);
  if (block_form(saved.model).positions == PositionKind::learned) saved.positions = saved.model.context;
  return saved;
}

Finding about(std::string key, std::string message, std::string found = {}, std::string expected = {},
              std::optional<std::string> fix = {}) {
  return {.key = std::move(key),
          .message = std::move(message),
          .found = std::move(found),
          .expected = std::move(expected),
          .fix_value = std::move(fix)};
}

/// Sets what the weights say, unless the spec says something else.
void fill(const SavedModel& saved, SpecWithWeights& result) {
  RunSpec theirs;
  theirs.model = saved.model;
  const RunSpec untouched;
  for (const std::string& key : saved.keys) {
    const SpecField& field = *find_field(key);
    const SpecValue mine = field.get(result.spec), wanted = field.get(theirs);
    if (mine == wanted) continue;
    if (mine == field.get(untouched)) {
      field.set(result.spec, wanted);
      continue;
    }
    const std::string value = format_value(wanted);
    result.findings.push_back(about(key, "is not what the weights were trained with", format_value(mine),
                                    value.empty() ? "the key left out" : value, value));
  }
  const std::int64_t context = result.spec.model.context;
  if (saved.positions > 0 && context > saved.positions)
    result.findings.push_back(about("model.context", "is longer than the texts that the weights were trained with",
                                    fmt::format("{}", context), fmt::format("at most {}", saved.positions),
                                    fmt::format("{}", saved.positions)));
  if (saved.positions > context && block_form(result.spec.model).positions == PositionKind::learned) {
    result.findings.push_back(about("model.context", fmt::format("leaves out the weights' positions from {} to {}: the "
                                                                 "model that is saved has none for them",
                                                                 context, saved.positions - 1)));
    result.findings.back().severity = Severity::note;
  }
  if (saved.window && context > *saved.window)
    result.findings.push_back(
        about("model.context", "is longer than the window in which the model's tokens see each other",
              fmt::format("{}", context), fmt::format("at most {}", *saved.window), fmt::format("{}", *saved.window)));
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Tensors that are in such files without being parameters.
bool is_ignored(std::string_view name, const ModelSpec& model) {
  for (const std::string_view ending : {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"})
    if (name.ends_with(ending)) return true;
  return name == "lm_head.weight" && block_form(model).tied_head;
}

/// The first three of several names, and how many there are.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i)
    text += (i > 0 ? ", " : "") + printable_name(names[i]);
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

/// The whole shape of the tensor that an entry of a checkpoint is, or is a part of: its metadata then have it. Rows in
/// packs are stored as [packs, rows, ...] by ranks that divide them, which is [packs x rows, ...] of `dims` dims.
std::vector<std::int64_t> shape_in_checkpoint(const ArchiveHeader& header, const ArchiveEntry& entry,
                                              std::size_t dims) {
  const auto said = header.metadata.find(entry.name);
  if (said == header.metadata.end()) return entry.shape;
  const Json part = parse_json(said->second);
  std::vector<std::int64_t> shape;
  if (part.is_object())
    for (const Json& size : part.value("shape", Json::array()))
      shape.push_back(size.is_number_integer() ? size.get<std::int64_t>() : 0);
  if (shape.size() != dims + 1) return shape;
  if (__builtin_mul_overflow(shape[0], shape[1], &shape[1])) shape[1] = 0;
  shape.erase(shape.begin());
  return shape;
}

bool fits(const std::vector<std::int64_t>& shape, const NeededTensor& needed, bool in_checkpoint) {
  if (shape.size() != needed.shape.size()) return false;
  const bool longer = needed.more_rows || (in_checkpoint && needed.by_token);
  return (shape.front() == needed.shape.front() || (longer && shape.front() > needed.shape.front())) &&
         std::equal(shape.begin() + 1, shape.end(), needed.shape.begin() + 1);
}

void check_tensors(const StartWeights& weights, const ModelSpec& model, std::vector<Finding>& findings) {
  std::vector<std::string> missing, extra, misshapen;
  std::set<std::string> used;
  std::string first_shape;
  for (const NeededTensor& needed : needed_tensors(weights.names, model)) {
    const WeightsFolder::Place* place = weights.find(needed.name);
    if (place == nullptr) {
      missing.push_back(needed.name);
      continue;
    }
    const ArchiveHeader& header = weights.folder.files[place->file].header;
    const ArchiveEntry& entry = header.entries[place->entry];
    used.insert(weights.checkpoint ? needed.name : entry.name);
    const std::vector<std::int64_t> shape =
        weights.checkpoint ? shape_in_checkpoint(header, entry, needed.shape.size()) : entry.shape;
    if (entry.dtype.find('F') != std::string::npos && fits(shape, needed, weights.checkpoint)) continue;
    if (misshapen.empty())
      first_shape = fmt::format("{} {} instead of {}", entry.dtype, shape_text(shape), shape_text(needed.shape));
    misshapen.push_back(needed.name);
  }
  for (const auto& [name, place] : weights.folder.tensors)
    if (!used.contains(name) && !is_ignored(name, model)) extra.push_back(name);
  if (!missing.empty()) findings.push_back(about("model.weights", "have no tensor for " + some_of(missing)));
  if (!misshapen.empty())
    findings.push_back(about("model.weights", "have another shape: " + some_of(misshapen), first_shape));
  if (!extra.empty())
    findings.push_back(about("model.weights", "have what is no part of the model: " + some_of(extra)));
}

}  // namespace

namespace {

/// "parameters.head.weight#3", a part of a tensor in a checkpoint -> "head.weight"; empty if it is no parameter's.
std::string parameter_of(const std::string& entry) {
  constexpr std::string_view prefix = "parameters.";
  return entry.starts_with(prefix) ? entry.substr(prefix.size(), entry.find('#') - prefix.size()) : std::string();
}

/// The headers of a checkpoint's files. Of a parameter in parts, one part has its name.
Result<WeightsFolder> open_checkpoint(const fs::path& folder) {
  const auto files = checkpoint_files(folder);
  if (!files) return tl::unexpected(files.error());
  WeightsFolder weights{.folder = folder, .config = {}, .files = {}, .tensors = {}};
  for (const fs::path& name : *files) {
    auto file = ArchiveFile::open(name);
    if (!file) return fail(ErrorCode::data, file.error().message, file.error().where, file.error().hint);
    for (std::size_t i = 0; i < file->header.entries.size(); ++i)
      if (const std::string parameter = parameter_of(file->header.entries[i].name); !parameter.empty())
        weights.tensors.try_emplace(parameter, WeightsFolder::Place{weights.files.size(), i});
    weights.files.push_back(std::move(*file));
  }
  return weights;
}

}  // namespace

Result<StartWeights> StartWeights::open(const fs::path& given) {
  const fs::path run = run_of(given);
  const auto own = run == given ? weights_of_run(run) : Result<fs::path>(given);
  if (!own) return tl::unexpected(own.error());
  const bool checkpoint = !run.empty() && is_checkpoint_folder(*own);
  auto opened = checkpoint ? open_checkpoint(*own) : WeightsFolder::open(*own);
  if (!opened) return tl::unexpected(opened.error());
  StartWeights weights{.folder = std::move(*opened), .checkpoint = checkpoint};
  if (weights.folder.config.empty()) {
    if (run.empty())
      return fail(ErrorCode::data, "there is no config.json, which says what model the weights are of", given.string(),
                  "Name a folder in Hugging Face's layout, or the folder of a run.");
    return weights;
  }
  const auto config = read_huggingface_config(weights.folder.config, (weights.folder.folder / "config.json").string());
  if (!config) return tl::unexpected(config.error());
  weights.names = config->names;
  return weights;
}

Result<std::string> StartWeights::fingerprint() const {
  std::vector<fs::path> paths;
  if (checkpoint) paths.push_back(folder.folder / "manifest.json");
  if (!folder.config.empty()) paths.push_back(folder.folder / "config.json");
  for (const ArchiveFile& each : folder.files)
    if (!checkpoint) paths.emplace_back(each.path);
  auto hashed = hash_files(paths, {});
  if (!hashed) return tl::unexpected(hashed.error());
  return std::move(hashed->mark.fingerprint);
}

Result<void> check_same_weights(const ModelSpec& model, const std::string& recorded, const std::string& now) {
  if (recorded.empty() || recorded == now) return {};
  return fail(ErrorCode::data, "the weights that the run started from changed since it began", model.weights,
              "Put them back as they were, or start a new run in another folder");
}

const WeightsFolder::Place* StartWeights::find(const std::string& tensor) const {
  const auto& tensors = folder.tensors;
  auto found = tensors.find(tensor);
  for (const std::string_view prefix : {"transformer.", "model."})
    if (found == tensors.end() && tensor.starts_with(prefix)) found = tensors.find(tensor.substr(prefix.size()));
  return found == tensors.end() ? nullptr : &found->second;
}

SpecWithWeights with_weights(const RunSpec& spec, const fs::path& base_dir) {
  SpecWithWeights result{.spec = spec, .findings = {}};
  if (spec.model.init != WeightInit::checkpoint) return result;
  if (spec.model.weights.empty()) {
    result.findings.push_back(about("model.weights", "names no folder, and model.init is \"checkpoint\""));
    return result;
  }
  fs::path folder = (base_dir / spec.model.weights).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code failed;
  // What a link names now is what the run starts from.
  if (fs::path real = fs::canonical(folder, failed); !failed) folder = std::move(real);
  const auto refuse = [&result](const Error& error) {
    std::string hint = error.hint;
    if (!hint.empty()) hint = "; " + std::string(1, static_cast<char>(hint.front() | 0x20)) + hint.substr(1);
    if (hint.ends_with('.')) hint.pop_back();
    result.findings.push_back(about("model.weights", error.message + hint, error.where));
  };
  if (const fs::path run = run_of(folder); !run.empty())
    if (const auto ended = check_ended(run); !ended) {
      refuse(ended.error());
      return result;
    }
  const auto weights = StartWeights::open(folder);
  if (!weights) {
    refuse(weights.error());
    return result;
  }
  const auto saved = model_of(*weights);
  if (!saved) {
    refuse(saved.error());
    return result;
  }
  fill(*saved, result);
  result.spec.model.weights = fs::absolute(weights->checkpoint ? weights->folder.folder : folder, failed).string();
  if (!has_errors(result.findings)) check_tensors(*weights, result.spec.model, result.findings);
  const auto fingerprint = weights->fingerprint();
  if (fingerprint)
    result.fingerprint = *fingerprint;
  else
    refuse(fingerprint.error());
  return result;
}

RunSpec with_keys_of(const RunSpec& spec, const RunSpec& filled) {
  RunSpec result = spec;
  if (spec.model.init != WeightInit::checkpoint || filled.model.init != WeightInit::checkpoint) return result;
  const RunSpec untouched;
  for (const SpecField& field : spec_fields())
    if (field.section() == "model" && !is_free(field.key) && field.get(spec) == field.get(untouched))
      field.set(result, field.get(filled));
  return result;
}

}  // namespace accrue
