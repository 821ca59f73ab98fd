// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "accrue/run/mapped_file.h"
#include "accrue/run/sha256.h"
#include "tokenizer.h"

namespace accrue::tokenize {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

}  // namespace

Result<OpenedTokenizer> open_tokenizer(const std::string& kind, const std::filesystem::path& file, bool keep_case) {
  std::vector<std::filesystem::path> paths = {file};
  if (kind == "bpe") paths.push_back(merges_of(file));
  std::vector<std::string> texts;
  std::vector<TokenizerFile> files;
  for (const auto& path : paths) {
    const auto mapped = MappedFile::open(path);
    if (!mapped) return tl::unexpected(mapped.error());
    if (mapped->size() > most_bytes) return fail(ErrorCode::data, "is larger than 1 GiB", path.string());
    texts.emplace_back(reinterpret_cast<const char*>(mapped->data()), static_cast<std::size_t>(mapped->size()));
    files.push_back({path.string(), sha256_hex(texts.back())});
  }
  auto made = kind == "bpe"         ? make_byte_pair(texts[0], texts[1])
              : kind == "wordpiece" ? make_word_piece(texts[0], keep_case)
                                    : make_sentence_piece(texts[0]);
  if (!made) {
    made.error().where = file.string();
    return tl::unexpected(made.error());
  }
  OpenedTokenizer opened{*std::move(made), {}};
  opened.facts = opened.tokenizer->facts();
  opened.facts.files = std::move(files);
  return opened;
}

}  // namespace accrue::tokenize
