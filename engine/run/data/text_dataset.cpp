// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/text_dataset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "accrue/run/indexed_dataset_builder.h"
#include "accrue/run/sha256.h"
#include "accrue/run/system_error.h"
#include "json_text.h"
#include "text_cut.h"

namespace accrue {
namespace {

using TextClock = std::chrono::steady_clock;
constexpr std::size_t text_part_bytes = std::size_t{1} << 18;
constexpr std::chrono::seconds checkpoint_every{2};

tl::unexpected<Error> text_error(const std::filesystem::path& path, int error) {
  return fail(ErrorCode::data, "the text cannot be read: " + system_words(error), path.string(), system_hint(error));
}

struct OpenText {
  int fd = -1;
  explicit OpenText(const std::filesystem::path& path) : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  OpenText(const OpenText&) = delete;
  OpenText& operator=(const OpenText&) = delete;
  ~OpenText() {
    if (fd >= 0) ::close(fd);
  }
};

class TextBuild {
 public:
  TextBuild(const TextDatasetRequest& request, const TextWatch& watch) : request_(request), watch_(watch) {}

  Result<TextDatasetFacts> run() {
    facts_ = request_.tokenizer != nullptr ? request_.tokenizer->facts() : byte_tokenizer_facts(request_.sentences);
    if (request_.tokenizer != nullptr && request_.sentences) add_special_tokens(facts_);
    facts_.sentences = request_.sentences;
    if (auto checked = check_options(); !checked) return tl::unexpected(checked.error());
    if (auto looked = look_at_texts(); !looked) return tl::unexpected(looked.error());
    if (auto begun = begin(); !begun) return tl::unexpected(begun.error());
    for (; file_ < request_.texts.size(); ++file_, offset_ = 0)
      if (auto read = read_text(request_.texts[file_]); !read) return tl::unexpected(read.error());
    // The dataset appears with its index; what its tokens mean is there before.
    if (builder_->tokens() > 0) {
      facts_.largest_token = largest_;
      if (auto written = write_sidecar(request_.prefix, facts_); !written) return tl::unexpected(written.error());
    }
    if (auto made = builder_->finalize(); !made) return tl::unexpected(made.error());
    return TextDatasetFacts{builder_->documents(), builder_->tokens(), progress_.resumed_at};
  }

 private:
  Result<void> check_options() const {
    if (request_.append_eod && request_.sentences)
      return fail(ErrorCode::config, "sentences have no token that ends a document", "append_eod",
                  "Leave out the one or the other");
    if (request_.append_eod && !facts_.end_of_document)
      return fail(ErrorCode::config, "the tokenizer has no token that ends a document", "append_eod",
                  "Leave it out, or take another tokenizer");
    return {};
  }

  /// Texts are gathered, to be encoded as a whole or in stretches.
  bool gathers() const { return request_.tokenizer != nullptr || request_.sentences; }

  Result<void> look_at_texts() {
    Json texts = Json::array();
    for (const auto& path : request_.texts) {
      struct stat facts {};
      if (::stat(path.c_str(), &facts) != 0) return text_error(path, errno);
      if (!S_ISREG(facts.st_mode))
        return fail(ErrorCode::data, "the text is not a regular file", path.string(),
                    "Name the files of a folder one by one: FOLDER/*.txt");
      progress_.total += facts.st_size;
      sizes_.push_back(facts.st_size);
      texts.push_back({path.string(), facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec});
    }
    build_ = {
        {"texts", texts}, {"documents", static_cast<int>(request_.documents)}, {"append_eod", request_.append_eod}};
    if (gathers()) {
      build_["sentences"] = request_.sentences;
      build_["tokenizer"] = sha256_hex(to_json(facts_));
    }
    return {};
  }

  Result<void> begin() {
    if (!IndexedDatasetBuilder::interrupted(request_.prefix)) {
      auto created = IndexedDatasetBuilder::create(request_.prefix, optimal_dtype(facts_.special.vocabulary));
      if (!created) return tl::unexpected(created.error());
      builder_.emplace(*std::move(created));
      return {};
    }
    auto resumed = IndexedDatasetBuilder::resume(request_.prefix);
    if (!resumed) return tl::unexpected(resumed.error());
    builder_.emplace(*std::move(resumed));
    const auto place = parse_json(builder_->place());
    const auto count = [&place](const char* key) {
      const auto found = place.find(key);
      return found != place.end() && found->is_number_unsigned() ? found->get<std::int64_t>() : 0;
    };
    if (!place.is_object() || place.value("build", Json()) != build_)
      return fail(ErrorCode::config, "an interrupted build of this dataset had other texts or options",
                  request_.prefix.string(),
                  "Name the same texts, unchanged, or remove the hidden files that begin with its name");
    file_ = static_cast<std::size_t>(count("file"));
    offset_ = count("offset");
    newlines_ = count("newlines");
    largest_ = count("largest") - 1;
    sentences_open_ = count("document_open") != 0;
    for (std::size_t i = 0; i < file_ && i < sizes_.size(); ++i) progress_.bytes += sizes_[i];
    progress_.resumed_at = progress_.bytes += offset_;
    return {};
  }

  Result<void> read_text(const std::filesystem::path& path) {
    const OpenText text(path);
    if (text.fd < 0 || ::lseek(text.fd, offset_, SEEK_SET) < 0) return text_error(path, errno);
    std::string part(text_part_bytes, '\0');
    while (true) {
      const auto count = ::read(text.fd, part.data(), part.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return text_error(path, errno);
      if (count == 0) break;
      if (auto taken = take(std::string_view(part).substr(0, static_cast<std::size_t>(count))); !taken) return taken;
      offset_ += count;
      progress_.bytes += count;
      if (auto watched = watch(); !watched) return watched;
    }
    auto ended = end_document();
    newlines_ = 0;
    return ended;
  }

  Result<void> watch() {
    const bool goes_on = !watch_ || watch_(progress_);
    const auto now = TextClock::now();
    if (goes_on && now - saved_ < checkpoint_every) return {};
    // What was gathered of a text and is not encoded yet is read again.
    const Json place = {{"build", build_},
                        {"file", file_},
                        {"offset", text_.empty() ? offset_ : text_begin_},
                        {"newlines", text_.empty() ? newlines_ : 0},
                        {"document_open", sentences_open_ ? 1U : 0U},
                        {"largest", static_cast<std::uint64_t>(largest_ + 1)}};
    if (auto saved = builder_->checkpoint(json_ascii(place)); !saved) return saved;
    saved_ = TextClock::now();
    if (goes_on) return {};
    return fail(ErrorCode::cancelled, "the build was stopped", request_.prefix.string(),
                "Ask for the same build again: it goes on from here");
  }

  /// Divides a part of a text into documents. Newlines that may yet belong to a blank line are held back.
  Result<void> take(std::string_view part) {
    if (gathers()) return gather(part);
    tokens_.clear();
    for (const char each : part) {
      if (request_.documents != DocumentKind::file && each == '\n') {
        ++newlines_;
        if (newlines_ < (request_.documents == DocumentKind::line ? 1 : 2)) continue;
        if (auto ended = end_document(); !ended) return ended;
      } else {
        if (newlines_ == 1 && in_document()) tokens_.push_back('\n');
        newlines_ = 0;
        tokens_.push_back(static_cast<unsigned char>(each));
      }
    }
    return put();
  }

  /// The same for texts that are gathered.
  Result<void> gather(std::string_view part) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] == '\n' && (request_.sentences || request_.documents != DocumentKind::file)) {
        ++newlines_;
        const bool line = request_.sentences || request_.documents == DocumentKind::line;
        if (line && newlines_ == 1)
          if (auto ended = request_.sentences ? end_sentence() : end_document(); !ended) return ended;
        if (newlines_ < 2) continue;
        if (auto ended = end_document(); !ended) return ended;
        continue;
      }
      const bool joins_lines = newlines_ == 1 && (!text_.empty() || builder_->open_tokens() > 0);
      newlines_ = 0;
      if (text_.empty()) text_begin_ = offset_ + static_cast<std::int64_t>(i) - (joins_lines ? 1 : 0);
      if (joins_lines)
        if (auto added = add('\n'); !added) return added;
      if (auto added = add(part[i]); !added) return added;
    }
    return {};
  }

  Result<void> add(char each) {
    text_.push_back(each);
    return text_.size() % stretch_bytes == 0 ? encode_stretch() : Result<void>();
  }

  /// Encodes the begin of a long text, so that memory stays small.
  Result<void> encode_stretch() {
    const std::size_t cut = request_.tokenizer != nullptr ? cut_before_space(text_) : text_.size();
    if (cut == 0 && text_.size() < longest_stretch_bytes) return {};
    if (cut == 0)
      return fail(ErrorCode::data, "16 MiB follow each other without white space, more than a tokenizer is given",
                  place_of_text(), "Divide them into words or lines, or use --tokenizer bytes");
    if (auto encoded = encode(std::string_view(text_).substr(0, cut)); !encoded) return encoded;
    text_.erase(0, cut);
    text_begin_ += static_cast<std::int64_t>(cut);
    return {};
  }

  /// Where the gathered text stands.
  std::string place_of_text() const {
    const std::string path = request_.texts[file_].string();
    return text_begin_ == 0 ? path : fmt::format("{}, from byte {} on", path, text_begin_);
  }

  /// Appends the tokens of a text to the open sequence.
  Result<void> encode(std::string_view text) {
    if (request_.tokenizer != nullptr) {
      auto encoded = request_.tokenizer->encode(text);
      if (!encoded) {
        if (encoded.error().where.empty()) encoded.error().where = place_of_text();
        return tl::unexpected(encoded.error());
      }
      tokens_ = *std::move(encoded);
    } else {
      const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
      tokens_.assign(bytes, bytes + text.size());
    }
    for (const std::int64_t token : tokens_)
      if (token < 0 || token >= facts_.special.vocabulary)
        return fail(ErrorCode::protocol, "the tokenizer gave a token that it does not have: " + std::to_string(token));
    return put();
  }

  /// Ends the gathered text as a sequence.
  Result<void> end_sentence() {
    if (!text_.empty())
      if (auto encoded = encode(text_); !encoded) return encoded;
    text_.clear();
    if (builder_->open_tokens() == 0) return {};  // white space alone, for a tokenizer that drops it
    if (request_.append_eod) tokens_.push_back(*facts_.end_of_document);
    if (auto written = put(); !written) return written;
    sentences_open_ = true;
    return builder_->end_sequence();
  }

  bool in_document() const { return !tokens_.empty() || builder_->open_tokens() > 0; }

  /// Appends tokens_. What a sequence cannot hold goes on in the next one of the same document.
  Result<void> put() {
    for (const std::int64_t token : tokens_) largest_ = std::max(largest_, token);
    std::span<const std::int64_t> rest(tokens_);
    for (auto room = request_.longest_sequence - builder_->open_tokens(); std::ssize(rest) > room;
         room = request_.longest_sequence) {
      if (auto appended = builder_->append(rest.first(static_cast<std::size_t>(room))); !appended) return appended;
      if (auto ended = builder_->end_sequence(); !ended) return ended;
      rest = rest.subspan(static_cast<std::size_t>(room));
    }
    auto appended = builder_->append(rest);
    tokens_.clear();
    return appended;
  }

  Result<void> end_document() {
    if (gathers()) {
      if (auto ended = end_sentence(); !ended) return ended;
      if (!std::exchange(sentences_open_, false)) return {};
      return builder_->end_document();
    }
    newlines_ = 0;
    if (!in_document()) return {};
    if (request_.append_eod) tokens_.push_back(end_of_document_token);
    if (auto written = put(); !written) return written;
    if (auto ended = builder_->end_sequence(); !ended) return ended;
    return builder_->end_document();
  }

  const TextDatasetRequest& request_;
  const TextWatch& watch_;
  Json build_;  ///< what must be the same for an interrupted build to go on
  std::vector<std::int64_t> sizes_;
  std::optional<IndexedDatasetBuilder> builder_;
  std::size_t file_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t newlines_ = 0;  ///< held back
  std::vector<std::int64_t> tokens_;
  DatasetSidecar facts_;
  std::int64_t largest_ = -1;
  // Of texts that are gathered.
  std::string text_;             ///< not encoded yet
  std::int64_t text_begin_ = 0;  ///< where it begins in its file
  bool sentences_open_ = false;  ///< the builder has sequences that are in no document yet
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

Result<TextDatasetFacts> build_text_dataset(const TextDatasetRequest& request, const TextWatch& watch) {
  return TextBuild(request, watch).run();
}

}  // namespace accrue
