// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/sentence_index.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <random>
#include <span>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"

namespace accrue {
namespace {

constexpr std::int64_t most_samples = std::int64_t{1} << 40;

Result<void> check_request(const SentenceIndexRequest& request) {
  if (request.maximum < 2 || request.maximum > std::numeric_limits<std::int32_t>::max())
    return fail(ErrorCode::config, fmt::format("a sample of {} tokens cannot be cut", request.maximum), {},
                "Give a longer sequence length");
  if (request.samples && (*request.samples < 1 || *request.samples > most_samples))
    return fail(ErrorCode::config, fmt::format("{} samples cannot be drawn", *request.samples), {},
                "Ask for at least one sample");
  if (!(request.short_probability >= 0 && request.short_probability <= 1))
    return fail(ErrorCode::config,
                fmt::format("the share {} of short samples is not in 0 to 1", request.short_probability));
  if (request.seed > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max() - 1))
    return fail(ErrorCode::config, fmt::format("the seed {} is above 2147483646", request.seed));
  return {};
}

/// Target length of the next sample: the maximum, or once in `ratio` samples a random length from 2.
class TargetLengths {
 public:
  explicit TargetLengths(const SentenceIndexRequest& request)
      : maximum_(static_cast<std::uint32_t>(request.maximum)), generator_(request.seed) {
    if (request.short_probability > 0) {
      const double ratio = std::round(1.0 / request.short_probability);
      ratio_ = static_cast<std::uint32_t>(std::min(ratio, 2147483647.0));
    }
  }
  std::uint32_t next() {
    if (ratio_ == 0) return maximum_;
    const auto value = static_cast<std::uint32_t>(generator_());
    return value % ratio_ == 0 ? 2 + value % (maximum_ - 1) : maximum_;
  }

 private:
  std::uint32_t maximum_;
  std::uint32_t ratio_ = 0;
  std::mt19937 generator_;
};

/// Sentences of the documents that give samples, with their lengths.
struct Sentences {
  std::vector<IndexRange> documents;
  std::vector<std::int32_t> lengths;
  std::int64_t first = 0;  ///< lengths[i] belongs to sequence first + i
  std::int64_t length(std::int64_t sequence) const { return lengths[static_cast<std::size_t>(sequence - first)]; }
};

bool gives_samples(const Sentences& sentences, const IndexRange& document, std::int64_t minimum) {
  if (document.size() < std::max<std::int64_t>(minimum, 1)) return false;
  if (document.size() == 1) return true;
  for (std::int64_t each = document.begin; each < document.end; ++each)
    if (sentences.length(each) > longest_sentence) return false;
  return true;
}

Result<Sentences> sentences_of(const IndexedDataset& dataset, const IndexRange& documents, std::int64_t minimum) {
  const auto nothing = [&] {
    return fail(ErrorCode::data, "the split has no documents", dataset.prefix().string(),
                "Give it a larger part of the dataset, or none");
  };
  if (documents.begin < 0 || documents.end > dataset.documents() || documents.size() < 1) return nothing();
  const auto first = dataset.document(documents.begin), last = dataset.document(documents.end - 1);
  if (!first) return tl::unexpected(first.error());
  if (!last) return tl::unexpected(last.error());
  if (last->end > std::numeric_limits<std::uint32_t>::max())
    return fail(ErrorCode::data, "has more sequences than a sentence index can name", dataset.prefix().string());
  if (last->end <= first->begin) return nothing();
  auto lengths = dataset.lengths({first->begin, last->end});
  if (!lengths) return tl::unexpected(lengths.error());
  Sentences sentences{.documents = {}, .lengths = *std::move(lengths), .first = first->begin};
  for (std::int64_t each = documents.begin; each < documents.end; ++each) {
    const auto document = dataset.document(each);
    if (!document) return tl::unexpected(document.error());
    if (document->begin < first->begin || document->end > last->end)
      return fail(ErrorCode::protocol, fmt::format("document {} lies outside its neighbours", each),
                  idx_path(dataset.prefix()).string(), "The file is damaged; build it again");
    if (gives_samples(sentences, *document, minimum)) sentences.documents.push_back(*document);
  }
  return sentences;
}

void append_document(std::vector<std::uint32_t>& rows, const Sentences& sentences, const IndexRange& document,
                     std::int64_t minimum, TargetLengths& targets) {
  std::int64_t begin = document.begin, tokens = 0;
  std::uint32_t target = targets.next();
  for (std::int64_t each = document.begin; each < document.end; ++each) {
    tokens += sentences.length(each);
    const std::int64_t remaining = document.end - each - 1;
    const bool full = tokens >= target && remaining > 1 && each + 1 - begin >= minimum;
    if (!full && remaining > 0) continue;
    rows.insert(rows.end(), {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(each + 1), target});
    begin = each + 1;
    tokens = 0;
    target = targets.next();
  }
}

/// Shuffles from the end, like the helpers: with a remainder instead of RandomState.
void shuffle_rows(std::vector<std::uint32_t>& rows, std::uint32_t seed) {
  std::mt19937_64 generator(std::uint64_t{seed} + 1);
  for (std::size_t row = rows.size() / 3; row-- > 1;) {
    const std::size_t other = generator() % (row + 1);
    for (std::size_t column = 0; column < 3; ++column) std::swap(rows[3 * row + column], rows[3 * other + column]);
  }
}

Result<void> fits_memory(std::size_t samples) {
  const double needed = 12.0 * static_cast<double>(samples);
  const double machine = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (needed <= machine / 2) return {};
  return fail(ErrorCode::out_of_memory, fmt::format("the index of {} samples needs {}", samples, format_bytes(needed)),
              {}, "Ask for fewer samples");
}

tl::unexpected<Error> no_samples(const IndexedDataset& dataset, const SentenceIndexRequest& request) {
  const bool pairs = request.minimum_sentences > 1;
  return fail(ErrorCode::data,
              fmt::format("no document has {} or more of at most {} tokens, so there are no samples",
                          counted(request.minimum_sentences, "sentence"), longest_sentence),
              dataset.prefix().string(),
              pairs
                  ? "Set model.binary_head = false, since only the order of two segments needs more than one sentence, "
                    "or build the dataset with one sequence for each sentence"
                  : "Build the dataset with shorter sequences");
}

}  // namespace

Result<void> check_gives_samples(const IndexedDataset& dataset, const IndexRange& documents,
                                 const SentenceIndexRequest& request) {
  for (std::int64_t each = documents.begin; each < documents.end; ++each) {
    const auto document = dataset.document(each);
    if (!document) return tl::unexpected(document.error());
    if (document->size() < request.minimum_sentences) continue;
    auto lengths = dataset.lengths(*document);
    if (!lengths) return tl::unexpected(lengths.error());
    if (gives_samples({.documents = {}, .lengths = *std::move(lengths), .first = document->begin}, *document,
                      request.minimum_sentences))
      return {};
  }
  return no_samples(dataset, request);
}

Result<IndexArray> build_sentence_index(const IndexedDataset& dataset, const IndexRange& documents,
                                        const SentenceIndexRequest& request) {
  if (auto checked = check_request(request); !checked) return tl::unexpected(checked.error());
  const auto sentences = sentences_of(dataset, documents, request.minimum_sentences);
  if (!sentences) return tl::unexpected(sentences.error());
  if (sentences->documents.empty()) return no_samples(dataset, request);
  if (auto fits = fits_memory(static_cast<std::size_t>(request.samples.value_or(1))); !fits)
    return tl::unexpected(fits.error());
  TargetLengths targets(request);
  std::vector<std::uint32_t> rows;
  do {
    for (const IndexRange& document : sentences->documents)
      append_document(rows, *sentences, document, request.minimum_sentences, targets);
  } while (request.samples && static_cast<std::int64_t>(rows.size() / 3) < *request.samples);
  shuffle_rows(rows, request.seed);
  return IndexArray(std::move(rows), 3);
}

}  // namespace accrue
