// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/indexed_dataset.h"

#include <fmt/format.h>

#include <limits>

#include "accrue/run/base/counted.h"
#include "index_layout.h"
#include "posix_file.h"

namespace accrue {
namespace {

constexpr std::string_view dtype_names[] = {"uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16"};
constexpr char build_again[] = "Build the dataset again, or copy its files again";

std::filesystem::path with_ending(const std::filesystem::path& prefix, const char* ending) {
  auto path = prefix;
  path += ending;
  return path;
}

/// 34 + 4 N + 8 N + 8 M; none if that is not a possible file size.
std::optional<std::int64_t> index_bytes(std::uint64_t sequences, std::uint64_t documents) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 64;
  if (sequences > most || documents > most) return std::nullopt;
  return index_header_bytes + static_cast<std::int64_t>(12 * sequences + 8 * documents);
}

}  // namespace

std::string_view to_string(DType dtype) {
  return dtype_names[static_cast<std::size_t>(dtype) - 1];
}

std::int64_t item_size(DType dtype) {
  return visit_dtype(dtype, [](auto value) { return static_cast<std::int64_t>(sizeof value); });
}

DType optimal_dtype(std::int64_t vocabulary) {
  return vocabulary < 65500 ? DType::uint16 : DType::int32;
}

std::filesystem::path idx_path(const std::filesystem::path& prefix) {
  return with_ending(prefix, ".idx");
}

std::filesystem::path bin_path(const std::filesystem::path& prefix) {
  return with_ending(prefix, ".bin");
}

std::filesystem::path prompts_path(const std::filesystem::path& prefix) {
  return with_ending(prefix, ".prompts");
}

std::vector<std::filesystem::path> files_of_dataset(const std::filesystem::path& prefix) {
  std::vector<std::filesystem::path> files{idx_path(prefix), bin_path(prefix)};
  std::error_code ignored;
  if (std::filesystem::exists(prompts_path(prefix), ignored)) files.push_back(prompts_path(prefix));
  return files;
}

tl::unexpected<Error> IndexedDataset::damaged(std::string message) const {
  return fail(ErrorCode::protocol, std::move(message), idx_path(prefix_).string(), build_again);
}

Result<IndexedDataset> IndexedDataset::open(const std::filesystem::path& prefix) {
  auto idx = MappedFile::open(idx_path(prefix));
  if (!idx) return tl::unexpected(idx.error());
  auto bin = MappedFile::open(bin_path(prefix));
  if (!bin) return tl::unexpected(bin.error());
  IndexedDataset dataset(prefix, *std::move(idx), *std::move(bin));
  if (auto read = dataset.read_header(); !read) return tl::unexpected(read.error());
  if (auto opened = dataset.open_prompts(); !opened) return tl::unexpected(opened.error());
  return dataset;
}

Result<void> IndexedDataset::open_prompts() {
  const auto path = prompts_path(prefix_);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  auto prompts = MappedFile::open(path);
  if (!prompts) return tl::unexpected(prompts.error());
  if (prompts->size() != 4 * sequences_)
    return fail(ErrorCode::protocol,
                fmt::format("has {}, and {} need {}", counted(prompts->size(), "byte"), counted(sequences_, "sequence"),
                            4 * sequences_),
                path.string(), build_again);
  prompts_ = *std::move(prompts);
  return {};
}

Result<std::int64_t> IndexedDataset::prompt_length(std::int64_t sequence) const {
  const auto whole = length(sequence);
  if (!whole || !prompts_) return whole ? Result<std::int64_t>(0) : whole;
  const std::int64_t prompt = load<std::int32_t>(prompts_->data() + 4 * sequence);
  if (prompt >= 0 && prompt <= *whole) return prompt;
  return fail(ErrorCode::protocol,
              fmt::format("gives sequence {}, of {}, a prompt of {}", sequence, counted(*whole, "token"), prompt),
              prompts_path(prefix_).string(), build_again);
}

Result<void> IndexedDataset::read_header() {
  const std::uint8_t* bytes = idx_.data();
  const auto begun = std::min<std::int64_t>(idx_.size(), std::ssize(index_magic));
  if (begun == 0 || std::memcmp(bytes, index_magic.data(), static_cast<std::size_t>(begun)) != 0)
    return damaged("is not the index of an indexed dataset: it does not begin with MMIDIDX");
  if (idx_.size() < index_header_bytes)
    return damaged(fmt::format("is cut short: it has {}, and its header alone has {}", counted(idx_.size(), "byte"),
                               index_header_bytes));
  const auto version = load<std::uint64_t>(bytes + index_magic.size());
  if (version != index_version) return damaged(fmt::format("has version {}; version 1 can be read", version));
  const std::uint8_t code = bytes[index_dtype_at];
  if (code < 1 || code > std::size(dtype_names))
    return damaged(fmt::format("names type {} for its tokens; there are 1 to {}", code, std::size(dtype_names)));
  dtype_ = static_cast<DType>(code);
  const auto sequences = load<std::uint64_t>(bytes + index_counts_at);
  const auto documents = load<std::uint64_t>(bytes + index_counts_at + 8);
  const auto expected = index_bytes(sequences, documents);
  if (expected && sequences > 0 && idx_.size() == *expected + static_cast<std::int64_t>(sequences))
    return fail(ErrorCode::protocol, "is a multimodal index: it has a mode for each sequence", idx_path(prefix_),
                "Accrue reads indexed datasets without modes");
  if (!expected || idx_.size() != *expected)
    return damaged(fmt::format("has {}, not those of {} sequences and {} document entries",
                               counted(idx_.size(), "byte"), sequences, documents));
  sequences_ = static_cast<std::int64_t>(sequences);
  document_entries_ = static_cast<std::int64_t>(documents);
  if (sequences_ == 0) return damaged("holds no sequence");
  if (document_entries_ == 0 || document_at(0) != 0 || document_at(document_entries_ - 1) != sequences_)
    return damaged(fmt::format("has documents that do not cover its {}", counted(sequences_, "sequence")));
  const std::int64_t size = item_size(dtype_), length = length_at(sequences_ - 1), pointer = pointer_at(sequences_ - 1);
  if (length < 0 || pointer < 0 || pointer > bin_.size() || bin_.size() - pointer != length * size)
    return fail(ErrorCode::protocol,
                fmt::format("has {}, and the last sequence of its index has {} of {} from byte {} on",
                            counted(bin_.size(), "byte"), counted(length, "token"), counted(size, "byte"), pointer),
                bin_path(prefix_), build_again);
  return {};
}

std::int64_t IndexedDataset::length_at(std::int64_t sequence) const {
  return load<std::int32_t>(idx_.data() + index_header_bytes + 4 * sequence);
}

std::int64_t IndexedDataset::pointer_at(std::int64_t sequence) const {
  return load<std::int64_t>(idx_.data() + index_header_bytes + 4 * sequences_ + 8 * sequence);
}

std::int64_t IndexedDataset::document_at(std::int64_t entry) const {
  return load<std::int64_t>(idx_.data() + index_header_bytes + 12 * sequences_ + 8 * entry);
}

Result<void> IndexedDataset::has_sequence(std::int64_t sequence) const {
  if (sequence >= 0 && sequence < sequences_) return {};
  return fail(ErrorCode::data, fmt::format("there is no sequence {}: they are 0 to {}", sequence, sequences_ - 1),
              prefix_.string());
}

Result<std::int64_t> IndexedDataset::tokens(const IndexRange& range) const {
  if (range.begin < 0 || range.end < range.begin || range.end > sequences_)
    return fail(ErrorCode::data,
                fmt::format("there are no sequences {} up to {}: there are {}", range.begin, range.end, sequences_),
                prefix_.string());
  const auto place = [this](std::int64_t sequence) {
    return sequence < sequences_ ? pointer_at(sequence) : bin_.size();
  };
  const std::int64_t begin = place(range.begin), end = place(range.end);
  if (begin < 0 || end < begin || end > bin_.size())
    return damaged(fmt::format("places sequences {} up to {} outside the {} of the .bin file", range.begin, range.end,
                               counted(bin_.size(), "byte")));
  return (end - begin) / item_size(dtype_);
}

Result<std::int64_t> IndexedDataset::length(std::int64_t sequence) const {
  if (auto there = has_sequence(sequence); !there) return tl::unexpected(there.error());
  const std::int64_t length = length_at(sequence);
  if (length < 0) return damaged(fmt::format("gives sequence {} the length {}", sequence, length));
  return length;
}

Result<std::vector<std::int32_t>> IndexedDataset::lengths(const IndexRange& range) const {
  if (range.begin < 0 || range.end < range.begin || range.end > sequences_)
    return fail(ErrorCode::data,
                fmt::format("there are no sequences {} up to {}: there are {}", range.begin, range.end, sequences_),
                prefix_.string());
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(range.size()));
  if (!lengths.empty())
    std::memcpy(lengths.data(), idx_.data() + index_header_bytes + 4 * range.begin, lengths.size() * sizeof lengths[0]);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0)
      return damaged(
          fmt::format("gives sequence {} the length {}", range.begin + static_cast<std::int64_t>(i), lengths[i]));
  return lengths;
}

Result<IndexRange> IndexedDataset::document(std::int64_t document) const {
  if (document < 0 || document >= documents())
    return fail(ErrorCode::data, fmt::format("there is no document {}: they are 0 to {}", document, documents() - 1),
                prefix_.string());
  const IndexRange range{document_at(document), document_at(document + 1)};
  if (range.begin < 0 || range.end < range.begin || range.end > sequences_)
    return damaged(fmt::format("gives document {} the sequences {} up to {}", document, range.begin, range.end));
  return range;
}

Result<std::int64_t> IndexedDataset::document_of(std::int64_t sequence) const {
  if (auto there = has_sequence(sequence); !there) return tl::unexpected(there.error());
  std::int64_t low = 0, high = documents();  // entries low <= sequence < high
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (document_at(middle) <= sequence ? low : high) = middle;
  }
  const auto range = document(low);
  if (!range) return tl::unexpected(range.error());
  if (sequence < range->begin || sequence >= range->end)
    return damaged(fmt::format("has no document for sequence {}", sequence));
  return low;
}

Result<std::span<const std::byte>> IndexedDataset::bytes(std::int64_t sequence, std::int64_t offset,
                                                         std::optional<std::int64_t> length) const {
  const auto whole = this->length(sequence);
  if (!whole) return tl::unexpected(whole.error());
  if (offset < 0 || offset > *whole || length.value_or(0) < 0 || length.value_or(0) > *whole - offset)
    return fail(ErrorCode::data,
                fmt::format("{} from token {} on are not in sequence {}, which has {}",
                            length ? counted(*length, "token") : std::string("those"), offset, sequence, *whole),
                prefix_.string());
  const std::int64_t size = item_size(dtype_), pointer = pointer_at(sequence);
  if (pointer < 0 || pointer > bin_.size() || *whole * size > bin_.size() - pointer)
    return damaged(
        fmt::format("places sequence {} outside the {} of the .bin file", sequence, counted(bin_.size(), "byte")));
  const std::int64_t count = length.value_or(*whole - offset);
  return std::as_bytes(std::span(bin_.data() + pointer + offset * size, static_cast<std::size_t>(count * size)));
}

Result<std::vector<std::int64_t>> IndexedDataset::get(std::int64_t sequence, std::int64_t offset,
                                                      std::optional<std::int64_t> length) const {
  if (dtype_ == DType::float32 || dtype_ == DType::float64)
    return fail(ErrorCode::config, fmt::format("its tokens are {} numbers, not token ids", to_string(dtype_)),
                prefix_.string());
  const auto raw = bytes(sequence, offset, length);
  if (!raw) return tl::unexpected(raw.error());
  return visit_dtype(dtype_, [&](auto kind) {
    std::vector<std::int64_t> tokens(raw->size() / sizeof kind);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): int8 holds numbers here
      tokens[i] = static_cast<std::int64_t>(load<decltype(kind)>(raw->data() + i * sizeof kind));
    return tokens;
  });
}

Result<void> IndexedDataset::check() const {
  const std::int64_t size = item_size(dtype_);
  std::int64_t expected = 0;
  for (std::int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const auto tokens = length(sequence);
    if (!tokens) return tl::unexpected(tokens.error());
    if (pointer_at(sequence) != expected)
      return damaged(fmt::format("places sequence {} at byte {}, where the one before it ends at {}", sequence,
                                 pointer_at(sequence), expected));
    expected += *tokens * size;
  }
  for (std::int64_t each = 0; each < documents(); ++each)
    if (const auto range = document(each); !range) return tl::unexpected(range.error());
  return {};
}

}  // namespace accrue
