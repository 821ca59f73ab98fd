// SPDX-License-Identifier: Apache-2.0
// Text from a trained GPT. The model is built undivided from the run's spec, whatever ranks trained it, because final
// weights hold whole tensors. With a vocabulary of bytes a token is a byte, with 256 as the end of document.
#include "rank/generate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/megatron/text_generation.h"
#include "accrue/models/model_part.h"
#include "accrue/run/fields/spec_io.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t bytes = 256;

struct GenerateArguments {
  fs::path dir;
  std::optional<std::string> prompt;
  std::optional<std::string> tokens;  ///< token ids instead of a text
  std::int64_t eod = -1;              ///< ends a text; -1: 256 with a vocabulary of bytes
  std::int64_t beams = 0;             ///< 0: sampling
  double length_penalty = 1.0;
  megatron::GenerationOptions options;
};

tl::unexpected<Error> refuse_to_generate(std::string message) {
  return fail(ErrorCode::config, std::move(message), "command line", "accrue-run generate --help lists the options.");
}

template <typename Number>
bool read_number(const std::string& word, Number& number) {
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
  return failed == std::errc{} && end == word.data() + word.size();
}

Result<GenerateArguments> parse(const std::vector<std::string>& words) {
  GenerateArguments arguments;
  megatron::GenerationOptions& options = arguments.options;
  const std::map<std::string, std::int64_t*> counts{{"--length", &options.tokens_to_generate},
                                                    {"--top-k", &options.top_k},
                                                    {"--beams", &arguments.beams},
                                                    {"--eod", &arguments.eod}};
  const std::map<std::string, double*> reals{{"--temperature", &options.temperature},
                                             {"--top-p", &options.top_p},
                                             {"--top-p-decay", &options.top_p_decay},
                                             {"--top-p-bound", &options.top_p_bound},
                                             {"--length-penalty", &arguments.length_penalty}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--add-bos") {
      options.add_bos = true;
    } else if (!word.starts_with("--")) {
      if (!arguments.dir.empty()) return refuse_to_generate("more than one run folder: " + word);
      arguments.dir = word;
    } else if (++i == words.size()) {
      return refuse_to_generate(word + " needs a value");
    } else if (word == "--prompt") {
      arguments.prompt = words[i];
    } else if (word == "--tokens") {
      arguments.tokens = words[i];
    } else if (counts.contains(word)  ? !read_number(words[i], *counts.at(word))
               : reals.contains(word) ? !read_number(words[i], *reals.at(word))
               : word == "--seed"     ? !read_number(words[i], options.seed)
                                      : true) {
      return refuse_to_generate(word + " " + words[i] + " is not an option with its number");
    }
  }
  if (arguments.dir.empty()) return refuse_to_generate("name the run folder");
  if (arguments.prompt.has_value() == arguments.tokens.has_value())
    return refuse_to_generate("give --prompt TEXT or --tokens IDS");
  return arguments;
}

Result<megatron::TokenList> token_ids(const std::string& text, std::int64_t vocabulary) {
  megatron::TokenList ids;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    std::int64_t id = -1;
    if (!read_number(text.substr(from, to - from), id) || id < 0 || id >= vocabulary)
      return refuse_to_generate("\"" + text.substr(from, to - from) + "\" in --tokens is no token from 0 to " +
                                std::to_string(vocabulary - 1));
    ids.push_back(id);
    from = to + 1;
  }
  return ids;
}

Result<megatron::TokenList> prompt_of(const GenerateArguments& arguments, std::int64_t vocabulary) {
  if (arguments.tokens) return token_ids(*arguments.tokens, vocabulary);
  if (vocabulary != bytes && vocabulary != bytes + 1)
    return refuse_to_generate("the model's vocabulary of " + std::to_string(vocabulary) +
                              " tokens is not that of bytes (256, or 257 with an end of document): give --tokenizer "
                              "KIND:FILE, or --tokens 12,7,...");
  megatron::TokenList ids;
  for (const char byte : *arguments.prompt) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

Result<ModelSpec> model_of(const fs::path& dir) {
  const fs::path file = dir / "spec.toml";
  const SpecReading reading = read_spec(file);
  if (!reading.ok())
    return fail(ErrorCode::config, reading.findings.front().text(), file.string(), "Name a run's folder.");
  if (!is_decoder_only(reading.spec.model.kind))
    return fail(ErrorCode::config, "the run trained no GPT: only a GPT continues a text", file.string());
  ModelSpec model = reading.spec.model;
  if (model.init == WeightInit::checkpoint) model.init = WeightInit::zeros;  // the run's own weights replace them
  return model;
}

Result<void> load(ModelPart& model, const fs::path& file) {
  auto archive = read_archive(file);
  if (!archive) return tl::unexpected(archive.error());
  const at::NoGradGuard no_grad;
  for (auto& each : model.named_parameters()) {
    const at::Tensor* saved = archive->find(each.key());
    if (saved == nullptr) saved = archive->find("part." + each.key());  // of a library with a gpt_chunk()
    if (saved == nullptr)
      return fail(
          ErrorCode::protocol, "it has no \"" + each.key() + "\"", file.string(),
          "If a plug-in library made the run's model, only one that it made with gpt_chunk() can be read here.");
    at::Tensor target = each.value();
    if (saved->sizes() != target.sizes()) {
      // Files contain no padding rows.
      if (saved->dim() != target.dim() || saved->size(0) > target.size(0) ||
          saved->sizes().slice(1) != target.sizes().slice(1))
        return fail(ErrorCode::protocol, "\"" + each.key() + "\" has another shape than the run's model",
                    file.string());
      target = target.narrow(0, 0, saved->size(0));
    }
    target.copy_(*saved);
  }
  return {};
}

void print(const megatron::GeneratedRow& row, bool as_text) {
  std::string text;
  for (const std::int64_t token : row.tokens) {
    if (!as_text)
      text += (text.empty() ? "" : ",") + std::to_string(token);
    else if (token < bytes)
      text.push_back(static_cast<char>(token));
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

/// Reports that a text ended before it had the requested tokens.
void tell_of_context(const megatron::GeneratedRow& row, const megatron::GenerationOptions& options) {
  const auto length = std::ssize(row.tokens);
  if (length < options.longest || length - row.prompt >= options.tokens_to_generate) return;
  std::fprintf(stderr, "note: %lld of %lld tokens were added: the model's context is %lld tokens\n",
               static_cast<long long>(length - row.prompt), static_cast<long long>(options.tokens_to_generate),
               static_cast<long long>(options.longest));
}

}  // namespace

Result<void> generate_from_run(const std::vector<std::string>& words) {
  auto arguments = parse(words);
  if (!arguments) return tl::unexpected(arguments.error());
  const auto spec = model_of(arguments->dir);
  if (!spec) return tl::unexpected(spec.error());
  auto prompt = prompt_of(*arguments, spec->vocabulary);
  if (!prompt) return tl::unexpected(prompt.error());
  const std::shared_ptr<ModelPart> model = make_model(*spec, 0);
  if (auto loaded = load(*model, arguments->dir / "final" / "model.safetensors"); !loaded) return loaded;
  model->eval();
  const auto logits = [&](const at::Tensor& tokens) {
    Batch batch{.inputs = tokens.contiguous(), .targets = {}, .samples = tokens.size(0), .items = tokens.numel()};
    return model->logits(model->forward(batch, {})).narrow(-1, 0, spec->vocabulary);
  };
  megatron::GenerationOptions& options = arguments->options;
  options.longest = spec->context;
  if (arguments->eod >= 0)
    options.eod = arguments->eod;
  else if (spec->vocabulary == bytes + 1)
    options.eod = bytes;
  try {
    if (arguments->beams == 0) {
      for (const auto& row : megatron::generate(logits, {*prompt}, options)) {
        print(row, arguments->prompt.has_value());
        tell_of_context(row, options);
      }
      return {};
    }
    if (options.top_k != 0 || options.top_p != 0.0 || options.temperature != 1.0)
      return refuse_to_generate("--beams searches and draws nothing: it excludes --temperature, --top-k and --top-p");
    const auto rows = megatron::beam_search(logits, *prompt,
                                            {.tokens_to_generate = options.tokens_to_generate,
                                             .beam_width = arguments->beams,
                                             .length_penalty = arguments->length_penalty,
                                             .add_bos = options.add_bos,
                                             .eod = options.eod,
                                             .longest = options.longest});
    if (rows.empty()) return {};
    print(rows.front(), arguments->prompt.has_value());
    tell_of_context(rows.front(), options);
    return {};
  } catch (const std::invalid_argument& error) {
    return refuse_to_generate(error.what());
  }
}

}  // namespace accrue
