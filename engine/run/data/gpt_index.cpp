// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/gpt_index.h"

#include <fmt/format.h>
#include <unistd.h>

#include <limits>
#include <numeric>

#include "accrue/run/base/number_text.h"
#include "accrue/run/data/numpy_random.h"
#include "posix_file.h"

namespace accrue {
namespace {

constexpr std::int64_t most_token_places = std::int64_t{1} << 62;

/// Quotient rounded up; a may be negative.
std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return a <= 0 ? 0 : (a - 1) / b + 1;
}

/// Appends the sequences of the split, `epochs` times, shuffled together.
void append_epochs(std::vector<std::int32_t>& index, const IndexRange& sequences, std::int64_t epochs,
                   RandomState& random) {
  const std::size_t begin = index.size();
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch)
    for (std::int64_t each = sequences.begin; each < sequences.end; ++each)
      index.push_back(static_cast<std::int32_t>(each));
  random.shuffle(std::span(index).subspan(begin));
}

template <typename T>
IndexArray shuffled_samples(const GptIndexShape& shape, RandomState& random) {
  std::vector<T> index(static_cast<std::size_t>(shape.samples));
  std::iota(index.begin(), index.end(), T{0});
  const auto apart = static_cast<std::size_t>(shape.samples_before_final_epoch);
  random.shuffle(std::span(index).first(apart));
  random.shuffle(std::span(index).subspan(apart));
  return IndexArray(std::move(index));
}

template <typename T>
IndexArray walk(std::span<const std::int32_t> lengths, std::span<const std::int32_t> document_index,
                const GptIndexRequest& request, std::int64_t samples, std::int64_t first) {
  std::vector<T> rows;
  rows.reserve(2 * static_cast<std::size_t>(samples + 1));
  std::size_t entry = 0;
  std::int64_t offset = 0;
  rows.insert(rows.end(), {T{0}, T{0}});
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    std::int64_t missing = request.sequence_length + request.extra();
    while (true) {
      const std::int64_t length = lengths[static_cast<std::size_t>(document_index[entry] - first)];
      if (missing <= length - offset) {
        offset += missing - request.extra();
        break;
      }
      if (entry + 1 == document_index.size()) {  // only a partial last sample gets here
        offset = length - request.extra();
        break;
      }
      missing -= length - offset;
      ++entry;
      offset = 0;
    }
    rows.insert(rows.end(), {static_cast<T>(entry), static_cast<T>(offset)});
  }
  return IndexArray(std::move(rows), 2);
}

Result<void> fits_memory(const GptIndexShape& shape, std::int64_t sequences) {
  const double needed = 4.0 * static_cast<double>(shape.epochs) * static_cast<double>(sequences) +
                        16.0 * static_cast<double>(shape.samples);
  const double machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (needed <= machine) return {};
  return fail(
      ErrorCode::out_of_memory,
      fmt::format("the index of {} samples in {} epochs needs {}", shape.samples, shape.epochs, format_bytes(needed)),
      {}, "Ask for fewer samples");
}

}  // namespace

Result<GptIndexShape> gpt_index_shape(std::int64_t tokens_per_epoch, const GptIndexRequest& request) {
  const std::int64_t length = request.sequence_length, extra = request.extra();
  if (length < 1 || length > std::numeric_limits<std::int32_t>::max() - 1)
    return fail(ErrorCode::config, fmt::format("a sample of {} tokens cannot be cut", length), {},
                "Give a sequence length of at least 1");
  if (request.samples && (*request.samples < 1 || *request.samples > (most_token_places - extra) / length))
    return fail(ErrorCode::config, fmt::format("{} samples of {} tokens cannot be drawn", *request.samples, length), {},
                "Ask for at least one sample");
  if (tokens_per_epoch < 1)
    return fail(ErrorCode::data, "the split has no tokens", {}, "Give it a larger part of the dataset, or none");
  GptIndexShape shape{.tokens_per_epoch = tokens_per_epoch};
  if (request.samples)
    shape.epochs = std::max<std::int64_t>(1, quotient_up(*request.samples * length + extra, tokens_per_epoch));
  const std::int64_t tokens = shape.epochs * tokens_per_epoch - extra;
  shape.samples = request.drop_last_partial_sequence ? tokens / length : quotient_up(tokens, length);
  shape.samples_before_final_epoch = shape.samples;
  if (shape.epochs > 1) {
    const std::int64_t before = (tokens - tokens_per_epoch) / length, per_epoch = (tokens_per_epoch - extra) / length;
    constexpr double threshold = 0.80;
    shape.separate_final_epoch =
        *request.samples - before < static_cast<std::int64_t>(threshold * static_cast<double>(per_epoch));
    if (shape.separate_final_epoch) shape.samples_before_final_epoch = before;
  }
  return shape;
}

IndexArray build_sample_index(std::span<const std::int32_t> lengths, std::span<const std::int32_t> document_index,
                              const GptIndexRequest& request, std::int64_t samples, std::int64_t first) {
  constexpr auto narrow = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
  return document_index.size() <= narrow ? walk<std::int32_t>(lengths, document_index, request, samples, first)
                                         : walk<std::int64_t>(lengths, document_index, request, samples, first);
}

Result<GptIndex> build_gpt_index(const IndexedDataset& dataset, const IndexRange& sequences,
                                 const GptIndexRequest& request) {
  const auto lengths = dataset.lengths(sequences);
  if (!lengths) return tl::unexpected(lengths.error());
  if (sequences.end > std::numeric_limits<std::int32_t>::max())
    return fail(ErrorCode::data, "has more sequences than the document index can name", dataset.prefix().string());
  const auto shape = gpt_index_shape(std::accumulate(lengths->begin(), lengths->end(), std::int64_t{0}), request);
  if (!shape) return tl::unexpected(shape.error());
  if (auto fits = fits_memory(*shape, sequences.size()); !fits) return tl::unexpected(fits.error());
  RandomState random(request.seed);
  std::vector<std::int32_t> documents;
  documents.reserve(static_cast<std::size_t>(shape->epochs * sequences.size()));
  append_epochs(documents, sequences, shape->epochs - (shape->separate_final_epoch ? 1 : 0), random);
  if (shape->separate_final_epoch) append_epochs(documents, sequences, 1, random);
  GptIndex index;
  index.sample_index = build_sample_index(*lengths, documents, request, shape->samples, sequences.begin);
  index.document_index = IndexArray(std::move(documents));
  index.shuffle_index = shape->samples < std::numeric_limits<std::uint32_t>::max() - 1
                            ? shuffled_samples<std::uint32_t>(*shape, random)
                            : shuffled_samples<std::int64_t>(*shape, random);
  return index;
}

}  // namespace accrue
