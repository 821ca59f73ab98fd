// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/text_dataset.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "accrue/run/base/sha256.h"
#include "accrue/run/data/indexed_dataset_builder.h"
#include "document_writer.h"
#include "json_lines.h"
#include "json_text.h"
#include "lower_case.h"
#include "text_cut.h"
#include "text_file.h"

namespace accrue {
namespace {

using TextClock = std::chrono::steady_clock;
constexpr std::chrono::seconds checkpoint_every{2};
constexpr std::size_t longest_json_line = std::size_t{256} << 20;

bool ends_line(char each) {
  return each == '\n' || each == '\r';
}

/// Converts line ends of Windows and old Macs to newlines.
std::string with_newlines(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && i > 0 && text[i - 1] == '\r') continue;
    result.push_back(text[i] == '\r' ? '\n' : text[i]);
  }
  return result;
}

class TextBuild {
 public:
  TextBuild(const TextDatasetRequest& request, const TextWatch& watch) : request_(request), watch_(watch) {}

  Result<TextDatasetFacts> run() {
    auto made = build();
    if (!made && builder_) give_up(made.error().code);
    return made;
  }

 private:
  Result<TextDatasetFacts> build() {
    facts_ = request_.tokenizer != nullptr ? request_.tokenizer->facts() : byte_tokenizer_facts(request_.sentences);
    if (request_.tokenizer != nullptr && request_.sentences) add_special_tokens(facts_);
    facts_.sentences = request_.sentences;
    facts_.prompts = !request_.prompt_key.empty();
    if (auto checked = check_options(); !checked) return tl::unexpected(checked.error());
    if (auto looked = look_at_texts(); !looked) return tl::unexpected(looked.error());
    if (auto begun = begin(); !begun) return tl::unexpected(begun.error());
    for (; file_ < request_.texts.size(); ++file_, offset_ = 0, json_line_ = 0)
      if (auto read = read_text(request_.texts[file_]); !read) return tl::unexpected(read.error());
    // The dataset appears with its index, so its description must exist before.
    if (builder_->tokens() > 0) {
      facts_.largest_token = writer_->largest_token();
      if (auto written = write_sidecar(request_.prefix, facts_); !written) return tl::unexpected(written.error());
      described_ = true;
    }
    if (auto made = builder_->finalize(); !made) return tl::unexpected(made.error());
    return TextDatasetFacts{builder_->documents(), builder_->tokens(), progress_.resumed_at};
  }

  /// After an error only files from which the same build can continue remain: its texts and options were not the cause,
  /// and it has recorded its place.
  void give_up(ErrorCode reason) {
    if (reason != ErrorCode::data && reason != ErrorCode::config && IndexedDatasetBuilder::interrupted(request_.prefix))
      return;
    std::move(*builder_).discard();
    std::error_code ignored;
    if (described_) std::filesystem::remove(sidecar_path(request_.prefix), ignored);
  }

  Result<void> check_options() const {
    if (request_.append_eod && request_.sentences)
      return fail(ErrorCode::config, "sentences have no token that ends a document", "append_eod",
                  "Leave out the one or the other");
    if (request_.append_eod && !facts_.end_of_document)
      return fail(ErrorCode::config, "the tokenizer has no token that ends a document", "append_eod",
                  "Leave it out, or take another tokenizer");
    if (!request_.prompt_key.empty() && request_.sentences)
      return fail(ErrorCode::config, "sentences have no prompt", "--prompt-key", "Leave out the one or the other");
    if (!request_.prompt_key.empty() && request_.prompt_key == json_key())
      return fail(ErrorCode::config, "the prompt is under the key of the text", "--prompt-key", "Name another key");
    for (const auto& path : request_.texts)
      if (!is_json(path) && !request_.prompt_key.empty())
        return fail(ErrorCode::config, "only JSON lines have a key for prompts", "--prompt-key",
                    "Name the key of the texts too: --json-keys KEY");
    for (const auto& path : request_.texts)
      if (is_json(path) && request_.documents != DocumentKind::file)
        return fail(ErrorCode::config, "a line of JSON is a document, so there is nothing to choose", "--documents",
                    "Leave it out, or build the dataset of " + path.string() + " apart");
    return {};
  }

  bool is_json(const std::filesystem::path& path) const { return !request_.json_key.empty() || holds_json_lines(path); }
  std::string json_key() const { return request_.json_key.empty() ? "text" : request_.json_key; }
  bool reads_json() const { return is_json(request_.texts[file_]); }

  Result<void> look_at_texts() {
    Json texts = Json::array();
    for (const auto& path : request_.texts) {
      struct stat facts {};
      if (::stat(path.c_str(), &facts) != 0) return unreadable_text(path, errno);
      if (!S_ISREG(facts.st_mode))
        return fail(ErrorCode::data, "the text is not a regular file", path.string(),
                    "Name the files of a folder one by one: FOLDER/*.txt");
      // Finds a file that is not a text before hours of work on earlier ones.
      if (const auto opened = TextFile::open(path); !opened) return tl::unexpected(opened.error());
      progress_.total += facts.st_size;
      sizes_.push_back(facts.st_size);
      texts.push_back({path.string(), facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec});
    }
    build_ = {{"texts", texts},
              {"documents", static_cast<int>(request_.documents)},
              {"append_eod", request_.append_eod},
              {"sentences", request_.sentences},
              {"json_key", request_.json_key},
              {"prompt_key", request_.prompt_key},
              {"tokenizer", sha256_hex(to_json(facts_))}};
    return {};
  }

  Result<void> begin() {
    const bool goes_on = IndexedDatasetBuilder::interrupted(request_.prefix);
    auto opened = goes_on ? IndexedDatasetBuilder::resume(request_.prefix)
                          : IndexedDatasetBuilder::create(request_.prefix, optimal_dtype(facts_.special.vocabulary));
    if (!opened) return tl::unexpected(opened.error());
    const Json place = parse_json(opened->place());
    if (goes_on && (!place.is_object() || place.value("build", Json()) != build_))
      return fail(ErrorCode::config, "an interrupted build of this dataset had other texts or options",
                  request_.prefix.string(),
                  "Name the same texts, unchanged, or remove the hidden files that begin with its name");
    builder_.emplace(*std::move(opened));
    writer_.emplace(request_, facts_, *builder_);
    if (goes_on) go_on_from(place);
    return {};
  }

  void go_on_from(const Json& place) {
    const auto count = [&place](const char* key) {
      const auto found = place.find(key);
      return found != place.end() && found->is_number_unsigned() ? found->get<std::int64_t>() : 0;
    };
    file_ = static_cast<std::size_t>(count("file"));
    offset_ = count("offset");
    json_line_ = count("json_line");
    line_begun_ = writer_->in_sequence();
    writer_->go_on(count("document_open") != 0, count("largest") - 1);
    progress_.resumed_at = count("bytes");
  }

  Result<void> read_text(const std::filesystem::path& path) {
    auto text = TextFile::open(path);
    if (!text) return tl::unexpected(text.error());
    offset_ = std::max(offset_, text->begin());
    if (auto gone = text->go_to(offset_); !gone) return gone;
    const auto before =
        std::accumulate(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(file_), std::int64_t{0});
    while (true) {
      const auto part = text->read();
      if (!part) return tl::unexpected(part.error());
      if (part->empty()) break;
      if (auto taken = take(*part); !taken) return taken;
      offset_ += std::ssize(*part);
      progress_.bytes = before + text->read_of_file();
      if (auto watched = watch(); !watched) return watched;
    }
    return end_text();
  }

  Result<void> watch() {
    const bool goes_on = !watch_ || watch_(progress_);
    const auto now = TextClock::now();
    if (goes_on && now - saved_ < checkpoint_every) return {};
    // Gathered text that is not yet encoded will be read again.
    const Json place = {{"build", build_},
                        {"file", file_},
                        {"offset", text_.empty() ? offset_ - std::ssize(held_) : text_begin_},
                        {"json_line", json_line_},
                        {"document_open", writer_->in_document() ? 1U : 0U},
                        {"largest", static_cast<std::uint64_t>(writer_->largest_token() + 1)},
                        {"bytes", static_cast<std::uint64_t>(progress_.bytes)}};
    if (auto saved = builder_->checkpoint(json_ascii(place)); !saved) return saved;
    saved_ = TextClock::now();
    if (goes_on) return {};
    return fail(ErrorCode::cancelled, "the build was stopped", request_.prefix.string(),
                "Ask for the same build again: it goes on from here");
  }

  /// Divides a part of a text into documents.
  Result<void> take(std::string_view part) {
    if (reads_json()) return take_json(part);
    if (request_.sentences || request_.documents != DocumentKind::file) return take_lines(part);
    for (std::size_t i = 0; i < part.size(); ++i)
      if (auto added = add(part[i], offset_ + static_cast<std::int64_t>(i)); !added) return added;
    return {};
  }

  /// Handles a text divided by lines. Line ends, and white space at the start of a line, wait in held_ until something
  /// follows them, as they may separate two documents.
  Result<void> take_lines(std::string_view part) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      const char each = part[i];
      const bool after_return = std::exchange(after_return_, each == '\r');
      if (after_return && each == '\n') {
        held_.push_back(each);
        continue;
      }
      if (ends_line(each)) {
        held_.push_back(each);
        if (auto ended = end_line(); !ended) return ended;
        continue;
      }
      if (!line_begun_ && (each == ' ' || (each >= '\t' && each <= '\r'))) {
        held_.push_back(each);
        continue;
      }
      line_begun_ = true;
      const std::int64_t place = offset_ + static_cast<std::int64_t>(i);
      if (!held_.empty())
        if (auto added = add_held(place); !added) return added;
      if (auto added = add(each, place); !added) return added;
    }
    return {};
  }

  /// Held characters come before `place`. They belong to the text if they join two of its lines; otherwise only the
  /// white space of the line itself does.
  Result<void> add_held(std::int64_t place) {
    const std::string held = std::exchange(held_, {});
    const auto last_end = held.find_last_of("\r\n");
    const bool joins = !text_.empty() || writer_->in_sequence();
    for (std::size_t i = joins || last_end == std::string::npos ? 0 : last_end + 1; i < held.size(); ++i)
      if (auto added = add(held[i], place - std::ssize(held) + static_cast<std::int64_t>(i)); !added) return added;
    return {};
  }

  Result<void> end_line() {
    const bool blank = !std::exchange(line_begun_, false);
    if (!blank && request_.sentences) return end_sequence();
    if (!blank && request_.documents == DocumentKind::paragraph) return {};
    if (blank) held_.clear();
    return blank && reads_json() ? Result<void>() : end_document();
  }

  /// Each line is a document, of any length.
  Result<void> take_json(std::string_view part) {
    while (!part.empty()) {
      const auto end = part.find('\n');
      held_ += part.substr(0, end);
      if (held_.size() > longest_json_line)
        return fail(ErrorCode::data, "the line has more than 256 MiB", place_of_text(), "Divide its text into several");
      if (end == std::string_view::npos) return {};
      part.remove_prefix(end + 1);
      if (auto taken = take_json_line(); !taken) return taken;
    }
    return {};
  }

  Result<void> take_json_line() {
    ++json_line_;
    const std::string line = std::exchange(held_, {});
    const auto texts = texts_under(json_key(), line);
    if (!texts) return tl::unexpected(texts.error());
    if (std::ranges::all_of(*texts, &std::string::empty)) return {};  // nothing follows the prompt, if there is one
    if (auto taken = take_prompt(line); !taken) return taken;
    for (const std::string& text : *texts) {
      if (text.empty()) continue;
      if (request_.prompt_key.empty())
        if (auto ended = end_sequence(); !ended) return ended;
      if (request_.sentences) {
        if (auto taken = take_lines(text); !taken) return taken;
        held_.clear();
        line_begun_ = after_return_ = false;
        continue;
      }
      for (const char each : text)
        if (auto added = add(each, 0); !added) return added;
    }
    return end_document();
  }

  Result<std::vector<std::string>> texts_under(const std::string& key, const std::string& line,
                                               std::string_view option = "--json-keys") const {
    auto texts = texts_of_json_line(line, key, option);
    if (!texts) texts.error().where = place_of_text();
    return texts;
  }

  /// The prompt and what follows it are one sequence; each has its own tokens.
  Result<void> take_prompt(const std::string& line) {
    if (request_.prompt_key.empty()) return {};
    const auto prompts = texts_under(request_.prompt_key, line, "--prompt-key");
    if (!prompts) return tl::unexpected(prompts.error());
    for (const std::string& text : *prompts)
      for (const char each : text)
        if (auto added = add(each, 0); !added) return added;
    if (auto encoded = encode_rest(); !encoded) return encoded;
    builder_->end_prompt();
    return {};
  }

  /// place: position in its file.
  Result<void> add(char each, std::int64_t place) {
    if (text_.empty()) text_begin_ = place;
    text_.push_back(each);
    return text_.size() % stretch_bytes == 0 ? encode_stretch() : Result<void>();
  }

  /// Encodes the beginning of a long text, so that memory stays small.
  Result<void> encode_stretch() {
    const std::size_t cut =
        request_.tokenizer != nullptr ? cut_before_space(text_) : text_.size() - (text_.back() == '\r' ? 1 : 0);
    if (cut == 0 && text_.size() < longest_stretch_bytes) return {};
    if (cut == 0)
      return fail(ErrorCode::data, "16 MiB follow each other without white space, more than a tokenizer is given",
                  place_of_text(), "Divide them into words or lines, or use --tokenizer bytes");
    if (auto encoded = encode(std::string_view(text_).substr(0, cut)); !encoded) return encoded;
    text_.erase(0, cut);
    text_begin_ += static_cast<std::int64_t>(cut);
    return {};
  }

  /// Place of the gathered text.
  std::string place_of_text() const {
    const std::string path = request_.texts[file_].string();
    if (reads_json()) return fmt::format("{}:{}", path, json_line_);
    return text_begin_ == 0 ? path : fmt::format("{}, from byte {} on", path, text_begin_);
  }

  Result<void> encode(std::string_view text) {
    const bool by_lines = request_.sentences || request_.documents != DocumentKind::file;
    const bool foreign_ends = by_lines && text.find('\r') != std::string_view::npos;
    auto written = foreign_ends ? writer_->append(with_newlines(text)) : writer_->append(text);
    if (!written && written.error().where.empty()) written.error().where = place_of_text();
    return written;
  }

  /// Encodes the gathered text, which is complete.
  Result<void> encode_rest() {
    if (text_.empty()) return {};
    auto encoded = encode(text_);
    text_.clear();
    return encoded;
  }

  Result<void> end_sequence() {
    if (auto encoded = encode_rest(); !encoded) return encoded;
    return writer_->end_sequence();
  }

  Result<void> end_document() {
    if (auto encoded = encode_rest(); !encoded) return encoded;
    return writer_->end_document();
  }

  Result<void> end_text() {
    if (reads_json() && !held_.empty())
      if (auto taken = take_json_line(); !taken) return taken;
    held_.clear();
    line_begun_ = after_return_ = false;
    return end_document();
  }

  const TextDatasetRequest& request_;
  const TextWatch& watch_;
  Json build_;  ///< must be equal for an interrupted build to continue
  DatasetSidecar facts_;
  std::vector<std::int64_t> sizes_;
  std::optional<IndexedDatasetBuilder> builder_;
  std::optional<DocumentWriter> writer_;
  bool described_ = false;  ///< the sidecar is written
  std::size_t file_ = 0;
  std::int64_t offset_ = 0;      ///< in the file, of the current part
  std::int64_t json_line_ = 0;   ///< JSON lines taken
  std::string text_;             ///< not yet encoded
  std::int64_t text_begin_ = 0;  ///< its start in the file
  std::string held_;             ///< read, but not yet part of a text
  bool line_begun_ = false;      ///< the line has more than white space
  bool after_return_ = false;    ///< a newline would belong to the previous line end
  TextProgress progress_;
  TextClock::time_point saved_ = TextClock::now();
};

}  // namespace

DatasetSidecar byte_tokenizer_facts(bool sentences) {
  DatasetSidecar facts{.tokenizer = "bytes", .files = {}, .special = {}};
  facts.special.vocabulary = byte_vocabulary;
  facts.special.pad = -1;
  facts.end_of_document = end_of_document_token;
  if (sentences) add_special_tokens(facts);
  return facts;
}

bool holds_json_lines(const std::filesystem::path& path) {
  std::string name = lowered(path.filename().string());
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json");
}

Result<TextDatasetFacts> build_text_dataset(const TextDatasetRequest& request, const TextWatch& watch) {
  return TextBuild(request, watch).run();
}

}  // namespace accrue
