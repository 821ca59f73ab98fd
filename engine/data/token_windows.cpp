// SPDX-License-Identifier: Apache-2.0
// A file is mapped, and widened to int64 one batch at a time, directly into the tensor for the embedding. Tokens are
// checked against the vocabulary once, when the file is opened: an embedding would otherwise read past its table.
#include "data/token_windows.h"

#include <ATen/ops/empty.h>

#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/data/data_split.h"
#include "accrue/run/data/mapped_file.h"
#include "accrue/run/facts/sample_places.h"

namespace accrue {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

template <typename Token>
class TokenFile final : public TokenStore {
 public:
  TokenFile(MappedFile file, std::int64_t context) : file_(std::move(file)), context_(context) {}

  void read(std::int64_t sample, std::int64_t* tokens, std::int64_t count) const override {
    const std::uint8_t* at = file_.data() + stream_sample_begin(sample, context_) * std::int64_t{sizeof(Token)};
    for (std::int64_t i = 0; i < count; ++i) {
      Token token;
      std::memcpy(&token, at + i * std::int64_t{sizeof(Token)}, sizeof(Token));
      tokens[i] = static_cast<std::int64_t>(token);
    }
  }

  /// Index of the first token outside the vocabulary, or -1.
  std::int64_t first_outside(std::int64_t vocabulary) const {
    const std::int64_t total = file_.size() / std::int64_t{sizeof(Token)};
    for (std::int64_t i = 0; i < total; ++i)
      if (at(i) >= vocabulary) return i;
    return -1;
  }

  std::int64_t at(std::int64_t index) const {
    Token token;
    std::memcpy(&token, file_.data() + index * std::int64_t{sizeof(Token)}, sizeof(Token));
    return static_cast<std::int64_t>(token);
  }

 private:
  MappedFile file_;
  std::int64_t context_;
};

template <typename Token>
Result<std::unique_ptr<TokenStore>> open_typed(const std::filesystem::path& path, std::int64_t samples,
                                               const ModelSpec& model) {
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  const std::int64_t total = file->size() / std::int64_t{sizeof(Token)};
  if (file->size() % std::int64_t{sizeof(Token)} != 0)
    return fail(ErrorCode::data,
                "the file's " + std::to_string(file->size()) + " bytes are no whole number of " +
                    std::to_string(sizeof(Token)) + "-byte tokens",
                path.string(), "Check data.token_type.");
  if (total < samples * model.context + 1)
    return fail(ErrorCode::data,
                "the data holds " + std::to_string(total) + " tokens, but " + std::to_string(samples) + " samples of " +
                    std::to_string(model.context) + " need " + std::to_string(samples * model.context + 1),
                path.string(), "The file was shortened since the plan was made: restore it, or start a new run.");
  auto store = std::make_unique<TokenFile<Token>>(std::move(*file), model.context);
  const bool fits = sizeof(Token) == 1 && model.vocabulary >= 256;
  if (const std::int64_t place = fits ? -1 : store->first_outside(model.vocabulary); place >= 0)
    return fail(ErrorCode::data,
                "token " + std::to_string(place) + " is " + std::to_string(store->at(place)) +
                    ", outside the vocabulary of " + std::to_string(model.vocabulary),
                path.string(), "Raise model.vocabulary, or correct data.token_type.");
  return store;
}

class JoinedTokens final : public TokenStore {
 public:
  JoinedTokens(std::unique_ptr<TokenStore> first, std::int64_t samples, std::unique_ptr<TokenStore> second)
      : first_(std::move(first)), samples_(samples), second_(std::move(second)) {}

  void read(std::int64_t sample, std::int64_t* tokens, std::int64_t count) const override {
    if (sample < samples_)
      first_->read(sample, tokens, count);
    else
      second_->read(sample - samples_, tokens, count);
  }

 private:
  std::unique_ptr<TokenStore> first_;
  std::int64_t samples_;
  std::unique_ptr<TokenStore> second_;
};

class TokenWindows final : public DataSource {
 public:
  TokenWindows(std::unique_ptr<TokenStore> store, std::int64_t context, const DataFacts& facts)
      : store_(std::move(store)),
        context_(context),
        train_(facts.samples),
        validation_(facts.validation_samples),
        places_(facts),
        row_(static_cast<std::size_t>(context + 1)) {}

  std::int64_t size(Split split) const override { return split == Split::train ? train_ : validation_; }

  Batch batch(Split split, std::span<const std::int64_t> samples) override {
    const auto rows = static_cast<std::int64_t>(samples.size());
    Batch batch{.inputs = at::empty({rows, context_}, at::kLong),
                .targets = at::empty({rows, context_}, at::kLong),
                .samples = rows,
                .items = rows * context_};
    const std::size_t bytes = static_cast<std::size_t>(context_) * sizeof(std::int64_t);
    for (std::int64_t b = 0; b < rows; ++b) {
      store_->read(places_.of(split == Split::train, samples[static_cast<std::size_t>(b)]), row_.data(), context_ + 1);
      std::memcpy(batch.inputs.mutable_data_ptr<std::int64_t>() + b * context_, row_.data(), bytes);
      std::memcpy(batch.targets.mutable_data_ptr<std::int64_t>() + b * context_, row_.data() + 1, bytes);
    }
    return batch;
  }

 private:
  std::unique_ptr<TokenStore> store_;
  std::int64_t context_;
  std::int64_t train_;
  std::int64_t validation_;
  SamplePlaces places_;
  std::vector<std::int64_t> row_;
};

}  // namespace

Result<std::unique_ptr<TokenStore>> open_token_file(const std::filesystem::path& path, std::int64_t token_bytes,
                                                    std::int64_t samples, const ModelSpec& model) {
  if (token_bytes == 1) return open_typed<std::uint8_t>(path, samples, model);
  if (token_bytes == 2) return open_typed<std::uint16_t>(path, samples, model);
  return open_typed<std::uint32_t>(path, samples, model);
}

std::unique_ptr<TokenStore> joined_tokens(std::unique_ptr<TokenStore> first, std::int64_t samples,
                                          std::unique_ptr<TokenStore> second) {
  return std::make_unique<JoinedTokens>(std::move(first), samples, std::move(second));
}

std::unique_ptr<DataSource> make_token_windows(std::unique_ptr<TokenStore> store, std::int64_t context,
                                               const DataFacts& facts) {
  return std::make_unique<TokenWindows>(std::move(store), context, facts);
}

}  // namespace accrue
