// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/indexed_dataset_builder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "index_layout.h"
#include "json_text.h"
#include "part_file.h"
#include "posix_file.h"

namespace accrue {
namespace {

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

tl::unexpected<Error> taken(const std::filesystem::path& path) {
  return fail(ErrorCode::config, "exists already", path.string(), "Choose another prefix, or remove the dataset");
}

}  // namespace

struct IndexedDatasetBuilder::State {
  /// Files of a dataset under construction.
  struct Files {
    explicit Files(const std::filesystem::path& prefix)
        : bin(part_of(bin_path(prefix))),
          idx(part_of(idx_path(prefix))),
          lengths(hidden(prefix, ".lengths.part")),
          documents(hidden(prefix, ".documents.part")),
          prompts(part_of(prompts_path(prefix))),
          checkpoint(hidden(prefix, ".checkpoint.json")) {}
    std::filesystem::path bin, idx, lengths, documents, prompts, checkpoint;

    void remove() const {
      for (const auto& path : {bin, idx, lengths, documents, prompts, checkpoint}) ::unlink(path.c_str());
    }
    /// Takes back the names of files that have theirs while the index has not: a build ended between the renames of
    /// finalize().
    void take_back(const std::filesystem::path& prefix) const {
      if (is_there(idx_path(prefix)) || !is_there(lengths)) return;
      for (const auto& [named, part] : {std::pair(bin_path(prefix), bin), std::pair(prompts_path(prefix), prompts)})
        if (is_there(named) && !is_there(part)) ::rename(named.c_str(), part.c_str());
    }

   private:
    static std::filesystem::path hidden(const std::filesystem::path& prefix, const char* ending) {
      return prefix.parent_path() / ("." + prefix.filename().string() + ending);
    }
  };

  std::filesystem::path prefix;
  Files files;
  DType dtype;
  PartFile bin, lengths, documents, prompts;
  std::int64_t open_tokens = 0;
  std::int64_t prompt_tokens = 0;  ///< of the open sequence
  bool has_prompts = false;
  std::string place;
  std::int64_t documented = 0;  ///< sequences in finished documents

  std::int64_t tokens() const { return bin.size() / item_size(dtype); }
  std::int64_t sequences() const { return lengths.size() / 4; }
  std::int64_t document_count() const { return documents.size() / 8; }
  bool in_document() const { return open_tokens > 0 || documented < sequences(); }
  Result<void> write_index();
};

IndexedDatasetBuilder::IndexedDatasetBuilder(std::unique_ptr<State> state) : state_(std::move(state)) {}
IndexedDatasetBuilder::IndexedDatasetBuilder(IndexedDatasetBuilder&&) noexcept = default;
IndexedDatasetBuilder& IndexedDatasetBuilder::operator=(IndexedDatasetBuilder&&) noexcept = default;
IndexedDatasetBuilder::~IndexedDatasetBuilder() = default;

bool IndexedDatasetBuilder::interrupted(const std::filesystem::path& prefix) {
  return is_there(State::Files(prefix).checkpoint) && !is_there(idx_path(prefix));
}

Result<IndexedDatasetBuilder> IndexedDatasetBuilder::create(const std::filesystem::path& prefix, DType dtype) {
  if (!prefix.has_filename()) return fail(ErrorCode::config, "is no prefix of a dataset", prefix.string());
  const State::Files files(prefix);
  if (is_there(idx_path(prefix))) {
    files.remove();  // of a build that was killed after its dataset was complete
    return taken(idx_path(prefix));
  }
  files.take_back(prefix);
  for (const auto& path : {bin_path(prefix), prompts_path(prefix)})
    if (is_there(path)) return taken(path);
  auto bin = PartFile::create(files.bin);
  if (!bin) return tl::unexpected(bin.error());
  ::unlink(files.checkpoint.c_str());
  auto lengths = PartFile::create(files.lengths);
  auto documents = PartFile::create(files.documents);
  auto prompts = PartFile::create(files.prompts);
  for (const auto* file : {&lengths, &documents, &prompts}) {
    if (*file) continue;
    files.remove();
    return tl::unexpected(file->error());
  }
  return IndexedDatasetBuilder(std::unique_ptr<State>(new State{
      prefix, files, dtype, *std::move(bin), *std::move(lengths), *std::move(documents), *std::move(prompts)}));
}

Result<IndexedDatasetBuilder> IndexedDatasetBuilder::resume(const std::filesystem::path& prefix) {
  if (is_there(idx_path(prefix))) return taken(idx_path(prefix));
  const State::Files files(prefix);
  files.take_back(prefix);
  const auto text = read_file(files.checkpoint, 1 << 20);
  if (!text) return tl::unexpected(text.error());
  const auto json = parse_json(*text);
  const auto number = [&json](const char* key) -> std::int64_t {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_integer()) return -1;
    const auto value = found->get<std::int64_t>();
    return value <= max_json_integer / 8 ? value : -1;
  };
  if (json.is_object() && !json.contains("prompt_tokens"))
    return fail(ErrorCode::protocol, "an earlier version of this program began the build", files.checkpoint.string(),
                "Remove the hidden files that begin with the dataset's name, and begin again");
  const bool readable = json.is_object() && json.contains("place") && json["place"].is_string();
  const std::int64_t code = readable ? number("dtype") : -1, tokens = readable ? number("tokens") : -1,
                     open = readable ? number("open_tokens") : -1, sequences = readable ? number("sequences") : -1,
                     documents = readable ? number("documents") : -1, documented = readable ? number("documented") : -1,
                     prompt = readable ? number("prompt_tokens") : -1;
  if (prompt < 0 || prompt > open || code < 1 || code > 8 || tokens < open || open < 0 || documented > sequences ||
      documented < 0 || documents < 0)
    return fail(ErrorCode::protocol, "is damaged", files.checkpoint.string(), "Remove the file and begin again");
  const auto dtype = static_cast<DType>(code);
  auto bin = PartFile::reopen(files.bin, tokens * item_size(dtype));
  if (!bin) return tl::unexpected(bin.error());
  auto lengths = PartFile::reopen(files.lengths, 4 * sequences);
  if (!lengths) return tl::unexpected(lengths.error());
  auto ends = PartFile::reopen(files.documents, 8 * documents);
  if (!ends) return tl::unexpected(ends.error());
  auto prompts = PartFile::reopen(files.prompts, 4 * sequences);
  if (!prompts) return tl::unexpected(prompts.error());
  auto state = std::unique_ptr<State>(
      new State{prefix, files, dtype, *std::move(bin), *std::move(lengths), *std::move(ends), *std::move(prompts), open,
                prompt, json.value("has_prompts", Json()) == true, json["place"].get<std::string>(), documented});
  return IndexedDatasetBuilder(std::move(state));
}

Result<void> IndexedDatasetBuilder::append(std::span<const std::int64_t> tokens) {
  if (state_->dtype == DType::float32 || state_->dtype == DType::float64)
    return fail(ErrorCode::config, fmt::format("its tokens are {} numbers, not token ids", to_string(state_->dtype)),
                state_->prefix.string());
  return visit_dtype(state_->dtype, [&](auto kind) -> Result<void> {
    using Token = decltype(kind);
    std::vector<Token> stored(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      stored[i] = static_cast<Token>(tokens[i]);
      if (static_cast<std::int64_t>(stored[i]) != tokens[i])
        return fail(ErrorCode::data, fmt::format("the token {} does not fit {}", tokens[i], to_string(state_->dtype)),
                    state_->prefix.string(), "Take a larger type");
    }
    return append_bytes(std::as_bytes(std::span<const Token>(stored)));
  });
}

Result<void> IndexedDatasetBuilder::append_bytes(std::span<const std::byte> tokens) {
  const auto size = static_cast<std::size_t>(item_size(state_->dtype));
  if (tokens.size() % size != 0) throw std::invalid_argument("append_bytes: whole tokens only");
  state_->open_tokens += static_cast<std::int64_t>(tokens.size() / size);
  if (state_->open_tokens > std::numeric_limits<std::int32_t>::max())
    return fail(ErrorCode::data, "a sequence has more than 2,147,483,647 tokens", state_->prefix.string(),
                "Divide the text into more documents");
  return state_->bin.append_values(tokens);
}

void IndexedDatasetBuilder::end_prompt() {
  state_->prompt_tokens = state_->open_tokens;
  state_->has_prompts = true;
}

Result<void> IndexedDatasetBuilder::end_sequence() {
  const auto length = static_cast<std::int32_t>(std::exchange(state_->open_tokens, 0));
  const auto prompt = static_cast<std::int32_t>(std::exchange(state_->prompt_tokens, 0));
  if (auto written = state_->prompts.append_values(std::span(&prompt, 1)); !written) return written;
  return state_->lengths.append_values(std::span(&length, 1));
}

Result<void> IndexedDatasetBuilder::add_item(std::span<const std::int64_t> tokens) {
  if (auto appended = append(tokens); !appended) return appended;
  return end_sequence();
}

Result<void> IndexedDatasetBuilder::end_document() {
  if (state_->open_tokens > 0) throw std::logic_error("end_document: end the sequence first");
  state_->documented = state_->sequences();
  return state_->documents.append_values(std::span<const std::int64_t>(&state_->documented, 1));
}

Result<void> IndexedDatasetBuilder::add_index(const std::filesystem::path& prefix) {
  if (state_->in_document()) throw std::logic_error("add_index: end the document first");
  const auto other = IndexedDataset::open(prefix);
  if (!other) return tl::unexpected(other.error());
  if (other->dtype() != dtype())
    return fail(ErrorCode::config, fmt::format("has {} tokens, not {}", to_string(other->dtype()), to_string(dtype())),
                prefix.string());
  if (auto sound = other->check(); !sound) return sound;
  for (std::int64_t document = 0; document < other->documents(); ++document) {
    const auto range = other->document(document);
    if (!range) return tl::unexpected(range.error());
    for (std::int64_t sequence = range->begin; sequence < range->end; ++sequence) {
      const auto tokens = other->bytes(sequence);
      if (!tokens) return tl::unexpected(tokens.error());
      const auto prompt = other->prompt_length(sequence);
      if (!prompt) return tl::unexpected(prompt.error());
      if (auto appended = append_bytes(*tokens); !appended) return appended;
      state_->prompt_tokens = *prompt;
      state_->has_prompts |= other->has_prompts();
      if (auto ended = end_sequence(); !ended) return ended;
    }
    if (auto ended = end_document(); !ended) return ended;
  }
  return {};
}

Result<void> IndexedDatasetBuilder::checkpoint(const std::string& place) {
  for (PartFile* file : {&state_->bin, &state_->lengths, &state_->documents, &state_->prompts})
    if (auto synced = file->sync(); !synced) return synced;
  const Json json = {{"dtype", static_cast<int>(dtype())},
                     {"tokens", tokens()},
                     {"open_tokens", open_tokens()},
                     {"sequences", sequences()},
                     {"documents", documents()},
                     {"documented", state_->documented},
                     {"prompt_tokens", state_->prompt_tokens},
                     {"has_prompts", state_->has_prompts},
                     {"place", place}};
  return write_file(state_->files.checkpoint, json_ascii(json));
}

/// The lengths are read again for the column of byte offsets, so that no column is held in memory.
Result<void> IndexedDatasetBuilder::State::write_index() {
  auto idx = PartFile::create(files.idx);
  if (!idx) return tl::unexpected(idx.error());
  std::string head(index_magic);
  const auto put = [&head](auto value) { head.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(index_version);
  put(static_cast<std::uint8_t>(dtype));
  put(static_cast<std::uint64_t>(sequences()));
  put(static_cast<std::uint64_t>(document_count() + 1));
  if (auto written = idx->append(head); !written) return written;
  const auto as_it_is = [&idx](std::string_view bytes) { return idx->append(bytes); };
  if (auto copied = lengths.read_all(as_it_is); !copied) return copied;
  std::int64_t offset = 0;
  const auto offsets = [&](std::string_view bytes) {
    std::vector<std::int64_t> column(bytes.size() / 4);
    for (std::size_t i = 0; i < column.size(); ++i) {
      column[i] = offset;
      offset += load<std::int32_t>(bytes.data() + 4 * i) * item_size(dtype);
    }
    return idx->append_values(std::span<const std::int64_t>(column));
  };
  if (auto written = lengths.read_all(offsets); !written) return written;
  const std::int64_t first = 0;
  if (auto written = idx->append_values(std::span(&first, 1)); !written) return written;
  if (auto copied = documents.read_all(as_it_is); !copied) return copied;
  if (auto synced = idx->sync(); !synced) return synced;
  if (has_prompts)
    if (auto named = prompts.commit(prompts_path(prefix)); !named) return named;
  if (auto named = bin.commit(bin_path(prefix)); !named) return named;
  if (auto named = idx->commit(idx_path(prefix)); !named) return named;
  const std::filesystem::path folder = prefix.parent_path();
  return sync_path(folder.empty() ? "." : folder);
}

Result<void> IndexedDatasetBuilder::finalize() {
  if (state_->in_document()) throw std::logic_error("finalize: end the document first");
  if (tokens() == 0)
    return fail(ErrorCode::data, "there are no tokens, so there is no dataset", state_->prefix.string());
  const State::Files& files = state_->files;
  auto written = state_->write_index();
  if (written) {
    files.remove();
    return {};
  }
  // No part of a dataset obstructs the next try.
  ::unlink(idx_path(state_->prefix).c_str());
  ::unlink(files.idx.c_str());
  files.take_back(state_->prefix);
  return written;
}

void IndexedDatasetBuilder::discard() && {
  state_->files.remove();
  state_.reset();
}

const std::string& IndexedDatasetBuilder::place() const {
  return state_->place;
}

DType IndexedDatasetBuilder::dtype() const {
  return state_->dtype;
}

std::int64_t IndexedDatasetBuilder::tokens() const {
  return state_->tokens();
}

std::int64_t IndexedDatasetBuilder::sequences() const {
  return state_->sequences();
}

std::int64_t IndexedDatasetBuilder::documents() const {
  return state_->document_count();
}

std::int64_t IndexedDatasetBuilder::open_tokens() const {
  return state_->open_tokens;
}

}  // namespace accrue
