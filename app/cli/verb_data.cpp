// SPDX-License-Identifier: Apache-2.0
// data: builds indexed datasets and shows their contents.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/data/dataset_splits.h"
#include "accrue/run/data/gpt_index.h"
#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/data/text_dataset.h"
#include "print.h"
#include "tokenizer_process.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

using nlohmann::ordered_json;

volatile sig_atomic_t stop_asked = 0;

/// After a signal the build ends at its next part, with a checkpoint.
void stop_build_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_asked = 1; };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
}

/// Progress bar in one line of a terminal; prints nothing elsewhere.
class BuildBar {
 public:
  bool show(const TextProgress& progress) {
    const auto now = Clock::now();
    if (!terminal_ || (now - shown_ < std::chrono::milliseconds(100) && progress.bytes < progress.total))
      return stop_asked == 0;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    const double rate = static_cast<double>(progress.bytes - progress.resumed_at) / std::max(seconds, 1e-3);
    draw_line(fmt::format(
        "{:.0f} %  {} of {}  {}/s  {:.0f} s left",
        100.0 * static_cast<double>(progress.bytes) / static_cast<double>(std::max<std::int64_t>(progress.total, 1)),
        format_bytes(progress.bytes), format_bytes(progress.total), format_bytes(rate),
        static_cast<double>(progress.total - progress.bytes) / std::max(rate, 1.0)));
    drawn_ = true;
    return stop_asked == 0;
  }
  ~BuildBar() {
    if (drawn_) say("\n");
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  bool drawn_ = false;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point shown_{};
};

DocumentKind document_kind(const std::string& name) {
  if (name == "line") return DocumentKind::line;
  return name == "paragraph" ? DocumentKind::paragraph : DocumentKind::file;
}

void print_array(const char* name, const IndexArray& array, const char* end) {
  put_data(fmt::format("      \"{}\": [", name));
  for (std::int64_t row = 0; row < array.size(); ++row) {
    const char* const separator = row == 0 ? "" : ", ";
    put_data(array.columns() == 0 ? fmt::format("{}{}", separator, array.at(row))
                                  : fmt::format("{}[{}, {}]", separator, array.at(row, 0), array.at(row, 1)));
  }
  put_data(fmt::format("]{}\n", end));
}

struct SplitIndex {
  DatasetSplit split;
  IndexRange sequences;
  GptIndexShape shape;
  GptIndex index;
};

/// Written incrementally: an index may be too large for a JSON tree.
void print_json(const DataIndexOptions& options, const std::vector<SplitIndex>& splits) {
  put_data(fmt::format("{{\n  \"prefix\": {},\n  \"sequence_length\": {},\n  \"seed\": {},\n  \"splits\": {{",
                       ordered_json(options.prefix).dump(-1, ' ', false, ordered_json::error_handler_t::replace),
                       options.sequence_length, options.seed));
  const char* separator = "\n";
  for (const SplitIndex& each : splits) {
    put_data(fmt::format(
        "{}    \"{}\": {{\n      \"sequences\": [{}, {}],\n      \"tokens_per_epoch\": {},\n"
        "      \"epochs\": {},\n      \"separate_final_epoch\": {},\n      \"samples\": {},\n",
        separator, to_string(each.split), each.sequences.begin, each.sequences.end, each.shape.tokens_per_epoch,
        each.shape.epochs, each.shape.separate_final_epoch, each.shape.samples));
    print_array("document_index", each.index.document_index, ",");
    print_array("sample_index", each.index.sample_index, ",");
    print_array("shuffle_index", each.index.shuffle_index, "");
    put_data("    }");
    separator = ",\n";
  }
  put_data("\n  }\n}\n");
}

std::string first_of(const IndexArray& array) {
  constexpr std::int64_t shown = 8;
  std::string text;
  for (std::int64_t row = 0; row < std::min(shown, array.size()); ++row)
    text += array.columns() == 0 ? fmt::format(" {}", array.at(row))
                                 : fmt::format(" ({},{})", array.at(row, 0), array.at(row, 1));
  return text + (array.size() > shown ? " ..." : "");
}

void print_text(const std::vector<SplitIndex>& splits) {
  for (const SplitIndex& each : splits) {
    put(fmt::format("{}: sequences {} to {}, {} in {}{}, {}\n", to_string(each.split), each.sequences.begin,
                    each.sequences.end - 1, counted(each.shape.tokens_per_epoch, "token"),
                    counted(each.shape.epochs, "epoch"), each.shape.separate_final_epoch ? ", the last one apart" : "",
                    counted(each.shape.samples, "sample")));
    put(fmt::format("  document index{}\n  sample index  {}\n  shuffle index {}\n", first_of(each.index.document_index),
                    first_of(each.index.sample_index), first_of(each.index.shuffle_index)));
  }
}

/// Reports a dataset that cannot be opened; perhaps one of its two files was given instead.
int report_dataset(Error error, const std::string& prefix) {
  if (prefix.ends_with(".bin") || prefix.ends_with(".idx"))
    error.hint = "Give the dataset without .bin or .idx: " + prefix.substr(0, prefix.size() - 4);
  return report(error);
}

Result<std::int64_t> tokens_of_prompts(const IndexedDataset& dataset) {
  std::int64_t tokens = 0;
  for (std::int64_t sequence = 0; sequence < dataset.sequences(); ++sequence) {
    const auto prompt = dataset.prompt_length(sequence);
    if (!prompt) return prompt;
    tokens += *prompt;
  }
  return tokens;
}

}  // namespace

int build_data(const DataBuildOptions& options) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(options.prefix, ignored).parent_path();
  if (!std::filesystem::is_directory(folder, ignored))
    return report({.code = ErrorCode::config,
                   .message = "there is no such folder: " + folder.string(),
                   .where = "--out " + options.prefix,
                   .hint = "Make it, or choose another."});
  stop_build_on_signals();
  std::unique_ptr<TokenizerProcess> tokenizer;
  if (options.tokenizer != "bytes" || options.keep_case) {
    auto started = TokenizerProcess::start(options.tokenizer, options.keep_case);
    if (!started) return report(started.error());
    tokenizer = *std::move(started);
  }
  TextDatasetRequest request{.texts = {options.texts.begin(), options.texts.end()},
                             .prefix = options.prefix,
                             .documents = document_kind(options.documents),
                             .append_eod = options.append_eod,
                             .sentences = options.sentences,
                             .json_key = options.json_key,
                             .prompt_key = options.prompt_key,
                             .tokenizer = tokenizer.get()};
  const auto built = [&request] {
    BuildBar bar;
    return build_text_dataset(request, [&bar](const TextProgress& progress) { return bar.show(progress); });
  }();
  if (!built) return report(built.error());
  if (tokenizer && tokenizer->left_out() > 0)
    say("note: the vocabulary has no token for %s of the texts, and no unknown token: left out\n",
        counted(tokenizer->left_out(), "byte").c_str());
  if (built->resumed_at > 0)
    say("accrue-run: went on after %s of an interrupted build\n", counted(built->resumed_at, "byte").c_str());
  put("%s: %s, %s\n", options.prefix.c_str(), counted(built->documents, "document").c_str(),
      counted(built->tokens, "token").c_str());
  if (built->documents == 1)
    say("note: one document is not divided into parts for training and validation; --documents paragraph or line "
        "makes more\n");
  return status_done;
}

int show_data(const DataShowOptions& options) {
  const auto dataset = IndexedDataset::open(options.prefix);
  if (!dataset) return report_dataset(dataset.error(), options.prefix);
  if (const auto sound = dataset->check(); !sound) return report(sound.error());
  const auto lengths = dataset->lengths({0, dataset->sequences()});
  if (!lengths) return report(lengths.error());
  const auto [shortest, longest] = std::minmax_element(lengths->begin(), lengths->end());
  const auto sidecar = read_sidecar(options.prefix);
  if (!sidecar) return report(sidecar.error());
  ordered_json json = {{"prefix", options.prefix},          {"dtype", to_string(dataset->dtype())},
                       {"documents", dataset->documents()}, {"sequences", dataset->sequences()},
                       {"tokens", dataset->tokens()},       {"shortest_sequence", *shortest},
                       {"longest_sequence", *longest}};
  if (dataset->has_prompts()) {
    const auto prompts = tokens_of_prompts(*dataset);
    if (!prompts) return report(prompts.error());
    json["prompt_tokens"] = *prompts;
  }
  if (*sidecar) {
    auto facts = ordered_json::parse(to_json(**sidecar));
    facts.erase("accrue_dataset");
    if (!options.json) {  // long lists
      facts["sentinels"] = facts["sentinels"].size();
      facts["continues"] = std::ranges::count((*sidecar)->special.continues, true);
      ordered_json files = ordered_json::array();
      for (const TokenizerFile& file : (*sidecar)->files) files.push_back(file.path + " " + file.sha256.substr(0, 16));
      facts["files"] = files;
    }
    json.update(facts);
  }
  if (options.json) {
    put_data(json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
    return status_done;
  }
  for (const auto& [name, value] : json.items()) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    put(fmt::format("{:<18} {}\n", words, text));
  }
  return status_done;
}

int index_data(const DataIndexOptions& options) {
  const auto dataset = IndexedDataset::open(options.prefix);
  if (!dataset) return report_dataset(dataset.error(), options.prefix);
  const auto matrix = parse_split(options.split);
  if (!matrix) return report(matrix.error());
  std::vector<SplitIndex> splits;
  for (std::size_t i = 0; i < matrix->size(); ++i) {
    const IndexRange range = (*matrix)[i] ? elements_of(*(*matrix)[i], dataset->sequences()) : IndexRange{};
    if (range.size() == 0) {
      if ((*matrix)[i] || (i < options.samples.size() && options.samples[i] > 0))
        say("accrue-run: %s skipped: --split assigns it none of %s\n",
            std::string(to_string(dataset_splits[i])).c_str(), counted(dataset->sequences(), "sequence").c_str());
      continue;
    }
    GptIndexRequest request{.sequence_length = options.sequence_length, .samples = {}, .seed = options.seed};
    if (i < options.samples.size()) request.samples = options.samples[i];
    const auto lengths = dataset->lengths(range);
    if (!lengths) return report(lengths.error());
    std::int64_t tokens = 0;
    for (const std::int32_t length : *lengths) tokens += length;
    const auto shape = gpt_index_shape(tokens, request);
    if (!shape) return report(shape.error());
    auto index = build_gpt_index(*dataset, range, request);
    if (!index) return report(index.error());
    if (shape->samples == 0)
      say("accrue-run: %s has no sample: %s do not fill one of %lld\n",
          std::string(to_string(dataset_splits[i])).c_str(), counted(tokens, "token").c_str(),
          static_cast<long long>(options.sequence_length));
    splits.push_back({dataset_splits[i], range, *shape, *std::move(index)});
  }
  if (options.json)
    print_json(options, splits);
  else
    print_text(splits);
  return status_done;
}

}  // namespace accrue::cli
