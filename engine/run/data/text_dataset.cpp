// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/text_dataset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "accrue/run/indexed_dataset_builder.h"
#include "accrue/run/system_error.h"

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
    if (auto looked = look_at_texts(); !looked) return tl::unexpected(looked.error());
    if (auto begun = begin(); !begun) return tl::unexpected(begun.error());
    for (; file_ < request_.texts.size(); ++file_, offset_ = 0)
      if (auto read = read_text(request_.texts[file_]); !read) return tl::unexpected(read.error());
    if (auto made = builder_->finalize(); !made) return tl::unexpected(made.error());
    return TextDatasetFacts{builder_->documents(), builder_->tokens(), progress_.resumed_at};
  }

 private:
  Result<void> look_at_texts() {
    nlohmann::json texts = nlohmann::json::array();
    for (const auto& path : request_.texts) {
      struct stat facts {};
      if (::stat(path.c_str(), &facts) != 0) return text_error(path, errno);
      if (!S_ISREG(facts.st_mode)) return fail(ErrorCode::data, "the text is not a regular file", path.string());
      progress_.total += facts.st_size;
      sizes_.push_back(facts.st_size);
      texts.push_back({path.string(), facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec});
    }
    build_ = {
        {"texts", texts}, {"documents", static_cast<int>(request_.documents)}, {"append_eod", request_.append_eod}};
    return {};
  }

  Result<void> begin() {
    if (!IndexedDatasetBuilder::interrupted(request_.prefix)) {
      auto created = IndexedDatasetBuilder::create(request_.prefix, optimal_dtype(byte_vocabulary));
      if (!created) return tl::unexpected(created.error());
      builder_.emplace(*std::move(created));
      return {};
    }
    auto resumed = IndexedDatasetBuilder::resume(request_.prefix);
    if (!resumed) return tl::unexpected(resumed.error());
    builder_.emplace(*std::move(resumed));
    const auto place = nlohmann::json::parse(builder_->place(), nullptr, false);
    const auto count = [&place](const char* key) {
      const auto found = place.find(key);
      return found != place.end() && found->is_number_unsigned() ? found->get<std::int64_t>() : 0;
    };
    if (!place.is_object() || place.value("build", nlohmann::json()) != build_)
      return fail(ErrorCode::config, "an interrupted build of this dataset had other texts or options",
                  request_.prefix.string(),
                  "Name the same texts, unchanged, or remove the hidden files that begin with its name");
    file_ = static_cast<std::size_t>(count("file"));
    offset_ = count("offset");
    newlines_ = count("newlines");
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
    return end_document();
  }

  Result<void> watch() {
    const bool goes_on = watch_(progress_);
    const auto now = TextClock::now();
    if (goes_on && now - saved_ < checkpoint_every) return {};
    const nlohmann::json place = {{"build", build_}, {"file", file_}, {"offset", offset_}, {"newlines", newlines_}};
    if (auto saved = builder_->checkpoint(place.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)); !saved)
      return saved;
    saved_ = TextClock::now();
    if (goes_on) return {};
    return fail(ErrorCode::cancelled, "the build was stopped", request_.prefix.string(),
                "Ask for the same build again: it goes on from here");
  }

  /// Divides a part of a text into documents. Newlines that may yet belong to a blank line are held back.
  Result<void> take(std::string_view part) {
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

  bool in_document() const { return !tokens_.empty() || builder_->open_tokens() > 0; }

  Result<void> put() {
    auto appended = builder_->append(tokens_);
    tokens_.clear();
    return appended;
  }

  Result<void> end_document() {
    newlines_ = 0;
    if (!in_document()) return {};
    if (request_.append_eod) tokens_.push_back(end_of_document_token);
    if (auto written = put(); !written) return written;
    if (auto ended = builder_->end_sequence(); !ended) return ended;
    return builder_->end_document();
  }

  const TextDatasetRequest& request_;
  const TextWatch& watch_;
  nlohmann::json build_;  ///< what must be the same for an interrupted build to go on
  std::vector<std::int64_t> sizes_;
  std::optional<IndexedDatasetBuilder> builder_;
  std::size_t file_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t newlines_ = 0;  ///< held back
  std::vector<std::int64_t> tokens_;
  TextProgress progress_;
  TextClock::time_point saved_ = TextClock::now();
};

}  // namespace

Result<TextDatasetFacts> build_text_dataset(const TextDatasetRequest& request, const TextWatch& watch) {
  return TextBuild(request, watch).run();
}

}  // namespace accrue
