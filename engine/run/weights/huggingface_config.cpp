// SPDX-License-Identifier: Apache-2.0
// Sources: the configuration classes of transformers 4 and 5, which differ in where rotary positions are described.
#include "accrue/run/weights/huggingface_config.h"

#include <string_view>
#include <utility>

#include "accrue/run/fields/block_form.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_fields.h"
#include "json_text.h"
#include "spec_text.h"

namespace accrue {

namespace {

/// A member that cannot be used, as an exception inside this file.
struct Refusal {
  std::string message;
  std::string hint;
};

/// Members of config.json by name; a null is a missing one.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  bool has(std::string_view name) const { return json_.contains(name) && !json_.at(name).is_null(); }
  std::int64_t whole(std::string_view name, std::optional<std::int64_t> otherwise = {}) const {
    if (!has(name)) return needed(name, otherwise);
    const Json& value = json_.at(name);
    if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 1e15)
      refuse(name, "a whole number");
    return value.get<std::int64_t>();
  }
  double real(std::string_view name, std::optional<double> otherwise = {}) const {
    if (!has(name)) return needed(name, otherwise);
    if (!json_.at(name).is_number()) refuse(name, "a number");
    return json_.at(name).get<double>();
  }
  bool truth(std::string_view name, bool otherwise) const {
    if (!has(name)) return otherwise;
    if (!json_.at(name).is_boolean()) refuse(name, "true or false");
    return json_.at(name).get<bool>();
  }
  std::string word(std::string_view name, const std::optional<std::string>& otherwise = {}) const {
    if (!has(name)) return needed(name, otherwise);
    if (!json_.at(name).is_string()) refuse(name, "a text");
    return json_.at(name).get<std::string>();
  }
  /// The members of an object; none if it is missing.
  std::optional<Members> object(std::string_view name) const {
    if (!has(name)) return std::nullopt;
    if (!json_.at(name).is_object()) refuse(name, "an object");
    return Members(json_.at(name));
  }
  /// Throws unless the member is missing or `wanted`.
  void only(std::string_view name, bool wanted) const {
    if (truth(name, wanted) != wanted)
      throw Refusal{
          std::string(name) + " = " + (wanted ? "false" : "true") + " changes the attention, and Accrue has no such",
          {}};
  }

 private:
  template <typename T>
  static T needed(std::string_view name, const std::optional<T>& otherwise) {
    if (!otherwise) throw Refusal{"there is no " + std::string(name), "Copy the whole folder again."};
    return *otherwise;
  }
  [[noreturn]] static void refuse(std::string_view name, const char* kind) {
    throw Refusal{std::string(name) + " is not " + kind, "Copy the whole folder again."};
  }

  const Json& json_;
};

void read_gpt2(const Members& config, HuggingFaceConfig& read) {
  ModelSpec& model = read.model;
  model.kind = ModelKind::gpt;
  read.names = WeightNames::gpt2;
  model.layers = config.whole("n_layer", 12);
  model.width = config.whole("n_embd", 768);
  model.heads = config.whole("n_head", 12);
  model.vocabulary = config.whole("vocab_size", 50257);
  read.positions = config.whole("n_positions", config.whole("n_ctx", 1024));
  if (config.has("n_inner") && config.whole("n_inner") != 4 * model.width) model.mlp_width = config.whole("n_inner");
  const std::string activation = config.word("activation_function", "gelu_new");
  if (activation == "gelu")
    model.activation = Activation::gelu;
  else if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
    throw Refusal{"activation_function is \"" + activation + "\"; blocks have gelu_new and gelu", {}};
  if (const double eps = config.real("layer_norm_epsilon", 1e-5); eps != 1e-5) model.norm_eps = eps;
  if (!config.truth("tie_word_embeddings", true)) model.tied_head = false;
  config.only("scale_attn_weights", true);
  config.only("scale_attn_by_inverse_layer_idx", false);
  config.only("add_cross_attention", false);
}

/// rope_theta and rope_scaling, or both in rope_parameters.
void read_rotary(const Members& config, ModelSpec& model) {
  const std::optional<Members> both = config.object("rope_parameters");
  const std::optional<Members> scaling = both ? both : config.object("rope_scaling");
  model.rotary_base = both && both->has("rope_theta") ? both->real("rope_theta") : config.real("rope_theta", 10000.0);
  if (!scaling) return;
  const std::string type = scaling->word("rope_type", scaling->word("type", "default"));
  if (type == "default") return;
  if (type != "llama3")
    throw Refusal{"rotary positions of type \"" + type + "\" are not offered", "llama3 and no scaling are."};
  model.rotary_scaling = {scaling->real("factor"), scaling->real("low_freq_factor"), scaling->real("high_freq_factor"),
                          static_cast<double>(scaling->whole("original_max_position_embeddings"))};
}

void read_llama(const Members& config, HuggingFaceConfig& read) {
  ModelSpec& model = read.model;
  const bool qwen2 = read.model_type == "qwen2";
  model.kind = ModelKind::llama;
  read.names = WeightNames::llama;
  model.layers = config.whole("num_hidden_layers");
  model.width = config.whole("hidden_size");
  model.heads = config.whole("num_attention_heads");
  model.vocabulary = config.whole("vocab_size");
  read.positions = config.whole("max_position_embeddings", 2048);
  model.mlp_width = config.whole("intermediate_size");
  // A Mistral without the member has eight.
  const std::int64_t groups = read.model_type == "mistral" ? 8 : model.heads;
  if (const std::int64_t kv = config.whole("num_key_value_heads", groups); kv != model.heads) model.kv_heads = kv;
  if (config.has("head_dim") && config.whole("head_dim") * model.heads != model.width)
    model.head_width = config.whole("head_dim");
  if (const double eps = config.real("rms_norm_eps", 1e-6); eps != 1e-5) model.norm_eps = eps;
  read_rotary(config, model);
  if (const std::string activation = config.word("hidden_act", "silu"); activation != "silu" && activation != "swish")
    throw Refusal{"hidden_act is \"" + activation + "\"; the blocks of a Llama have silu", {}};
  const bool attention_bias = !qwen2 && config.truth("attention_bias", false),
             mlp_bias = config.truth("mlp_bias", false);
  if (attention_bias != mlp_bias)
    throw Refusal{"attention_bias and mlp_bias differ, and Accrue's blocks have both biases or none", {}};
  if (mlp_bias) model.bias = true;
  if (qwen2) model.qkv_bias = true;
  if (config.truth("tie_word_embeddings", false)) model.tied_head = true;
  const bool windowed = read.model_type == "mistral" || config.truth("use_sliding_window", false);
  if (windowed && config.has("sliding_window")) read.window = config.whole("sliding_window");
}

constexpr const char* keys_of_all[] = {"model.kind",       "model.layers",     "model.width",
                                       "model.heads",      "model.vocabulary", "model.mlp_width",
                                       "model.activation", "model.norm_eps",   "model.tied_head"};
constexpr const char* keys_of_llama[] = {"model.kv_heads",    "model.head_width",    "model.norm",
                                         "model.positions",   "model.bias",          "model.qkv_bias",
                                         "model.rotary_base", "model.rotary_scaling"};

/// Returns which value no field takes; empty if none.
std::string range_problem(const HuggingFaceConfig& read) {
  RunSpec spec;
  spec.model = read.model;
  for (const std::string& key : read.keys) {
    const SpecField& field = *find_field(key);
    const SpecValue value = field.get(spec);
    if (std::holds_alternative<std::monostate>(value)) continue;
    if (const auto problem = spec_detail::check_value(field, value)) return problem->text();
  }
  return {};
}

}  // namespace

Result<HuggingFaceConfig> read_huggingface_config(const std::string& text, const std::string& where) {
  const Json json = parse_json(text);
  if (!json.is_object()) return fail(ErrorCode::data, "this is no JSON object", where, "Copy the whole folder again.");
  HuggingFaceConfig read;
  try {
    const Members config(json);
    read.model_type = config.word("model_type");
    if (read.model_type == "gpt2")
      read_gpt2(config, read);
    else if (read.model_type == "llama" || read.model_type == "mistral" || read.model_type == "qwen2")
      read_llama(config, read);
    else
      throw Refusal{"model_type is \"" + read.model_type.substr(0, 40) + "\", which Accrue does not have",
                    "gpt2, llama, mistral and qwen2 can be read."};
  } catch (const Refusal& refusal) {
    return fail(ErrorCode::data, refusal.message, where, refusal.hint);
  }
  for (const char* key : keys_of_all) read.keys.emplace_back(key);
  if (read.model.kind == ModelKind::llama)
    for (const char* key : keys_of_llama) read.keys.emplace_back(key);
  if (const std::string problem = range_problem(read); !problem.empty()) return fail(ErrorCode::data, problem, where);
  return read;
}

namespace {

Json gpt2_config(const ModelSpec& model, const BlockForm& form) {
  Json json = {{"architectures", {"GPT2LMHeadModel"}},
               {"model_type", "gpt2"},
               {"n_layer", model.layers},
               {"n_embd", model.width},
               {"n_head", model.heads},
               {"n_positions", model.context},
               {"vocab_size", model.vocabulary},
               {"bos_token_id", nullptr},
               {"eos_token_id", nullptr},
               {"activation_function", form.activation == Activation::gelu ? "gelu" : "gelu_new"},
               {"layer_norm_epsilon", form.norm_eps},
               {"tie_word_embeddings", form.tied_head}};
  if (form.mlp_width != 4 * model.width) json["n_inner"] = form.mlp_width;
  for (const char* rate : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) json[rate] = model.dropout;
  return json;
}

Json rotary_json(const ModelSpec& model) {
  Json json = {{"rope_theta", model.rotary_base}, {"rope_type", "default"}};
  if (model.rotary_scaling.size() != 4) return json;
  json["rope_type"] = "llama3";
  json["factor"] = model.rotary_scaling[0];
  json["low_freq_factor"] = model.rotary_scaling[1];
  json["high_freq_factor"] = model.rotary_scaling[2];
  json["original_max_position_embeddings"] = static_cast<std::int64_t>(model.rotary_scaling[3]);
  return json;
}

Json llama_config(const ModelSpec& model, const BlockForm& form) {
  const bool qwen2 = form.qkv_bias && !form.bias;
  const Json rotary = rotary_json(model);
  Json json = {{"architectures", {qwen2 ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
               {"model_type", qwen2 ? "qwen2" : "llama"},
               {"num_hidden_layers", model.layers},
               {"hidden_size", model.width},
               {"num_attention_heads", model.heads},
               {"num_key_value_heads", form.kv_heads},
               {"head_dim", form.head_width},
               {"intermediate_size", form.mlp_width},
               {"max_position_embeddings", model.context},
               {"vocab_size", model.vocabulary},
               {"bos_token_id", nullptr},
               {"eos_token_id", nullptr},
               {"hidden_act", "silu"},
               {"rms_norm_eps", form.norm_eps},
               // transformers 5 reads rope_parameters, and those before it the others.
               {"rope_parameters", rotary},
               {"rope_theta", model.rotary_base},
               {"tie_word_embeddings", form.tied_head}};
  if (model.rotary_scaling.size() == 4) json["rope_scaling"] = rotary;
  if (!qwen2) {
    json["attention_bias"] = form.bias;
    json["mlp_bias"] = form.bias;
  }
  return json;
}

/// Returns what no model of transformers has together; empty if one has it all.
std::string form_problem(const ModelSpec& model, const BlockForm& form) {
  const bool gpt2 = form.norm == NormKind::layer;
  if (!is_decoder_only(model.kind)) return "model.kind \"" + std::string(to_name(model.kind)) + "\"";
  if (gpt2 != (form.positions == PositionKind::learned)) return "model.norm and model.positions";
  if (gpt2 == form.gated()) return "model.norm and model.activation";
  if (gpt2 && (form.has_groups() || form.head_width * model.heads != model.width || !form.bias || !form.qkv_bias))
    return "GPT-2's blocks with model.kv_heads, model.head_width or without a bias";
  if (!gpt2 && form.bias && !form.qkv_bias) return "model.bias without model.qkv_bias";
  if (!gpt2 && form.qkv_bias && !form.bias && form.head_width * model.heads != model.width)
    return "Qwen2's blocks with model.head_width";
  return {};
}

}  // namespace

Result<std::string> write_huggingface_config(const ModelSpec& model) {
  const BlockForm form = block_form(model);
  if (const std::string problem = form_problem(model, form); !problem.empty())
    return fail(ErrorCode::config, "no model of transformers has " + problem, "[model]",
                "GPT-2, Llama and Qwen2 models can be written.");
  Json json = form.norm == NormKind::layer ? gpt2_config(model, form) : llama_config(model, form);
  json["torch_dtype"] = std::string(to_name(model.dtype));
  return json_text(json, 2) + "\n";
}

}  // namespace accrue
