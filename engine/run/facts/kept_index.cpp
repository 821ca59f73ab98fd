// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/facts/kept_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>

#include "accrue/run/base/owned_fd.h"
#include "posix_file.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

/// Held while an index is searched and built. The system releases it when a process dies. A file system without locks
/// only causes repeated work.
OwnedFd lock_of(const fs::path& folder) {
  OwnedFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (fd && ::flock(fd.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return fd;
}

/// Loads an index, or builds and saves it.
template <typename Load, typename Build, typename Save>
auto cached(const fs::path& folder, IndexCaching caching, const Load& load, const Build& build, const Save& save)
    -> decltype(build()) {
  if (caching == IndexCaching::read_only) {
    auto found = load();
    if (!found) return tl::unexpected(found.error());
    return *found ? **std::move(found) : build();
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    auto failed = disk_error(folder, "cannot be made", error.value());
    failed.value().hint = "Name a folder that can be written: data.cache, or data_cache_path";
    return failed;
  }
  const OwnedFd lock = lock_of(folder);
  auto found = load();
  if (!found) return tl::unexpected(found.error());
  if (*found) return **std::move(found);
  auto built = build();
  if (!built) return built;
  if (auto saved = save(*built); !saved) return tl::unexpected(saved.error());
  return built;
}

}  // namespace

TokenizerIdentity tokenizer_of(const std::optional<DatasetSidecar>& sidecar, const ModelSpec& model) {
  const auto null_tokenizer = [](std::int64_t vocabulary) {
    return TokenizerIdentity{"_NullTokenizer", {std::nullopt}, {{"vocab_size", fmt::format("{}", vocabulary - 1)}}};
  };
  if (!sidecar) return null_tokenizer(model.vocabulary);
  TokenizerIdentity identity;
  for (const TokenizerFile& file : sidecar->files) identity.paths.emplace_back(file.path);
  const std::string extra_ids =
      fmt::format("{}", model.kind == ModelKind::t5 ? sidecar->special.sentinels.size() : std::size_t{0});
  if (sidecar->tokenizer == "bpe") {
    identity.class_name = "_GPT2BPETokenizer";
  } else if (sidecar->tokenizer == "wordpiece") {
    identity.class_name = "_BertWordPieceTokenizer";
    identity.options = {{"lower_case", sidecar->keep_case ? "False" : "True"}, {"vocab_extra_ids", extra_ids}};
  } else if (sidecar->tokenizer == "sentencepiece") {
    identity.class_name = is_decoder_only(model.kind) ? "_GPTSentencePieceTokenizer" : "_SentencePieceTokenizer";
    identity.options = {{"vocab_extra_ids", extra_ids}};
  } else {
    return null_tokenizer(sidecar->special.vocabulary);
  }
  return identity;
}

Result<GptIndex> kept_index(const fs::path& folder, const DatasetIdentity& identity,
                            const std::function<Result<GptIndex>()>& build, IndexCaching caching) {
  return cached(
      folder, caching, [&] { return load_index(folder, identity); }, build,
      [&](const GptIndex& built) { return save_index(folder, identity, built); });
}

Result<IndexArray> kept_sentence_index(const fs::path& folder, const DatasetIdentity& identity,
                                       const std::function<Result<IndexArray>()>& build, IndexCaching caching) {
  return cached(
      folder, caching, [&] { return load_sentence_index(folder, identity); }, build,
      [&](const IndexArray& built) { return save_sentence_index(folder, identity, built); });
}

Result<BlendIndex> kept_index(const fs::path& folder, const BlendIdentity& identity,
                              const std::function<Result<BlendIndex>()>& build, IndexCaching caching) {
  return cached(
      folder, caching, [&] { return load_index(folder, identity); }, build,
      [&](const BlendIndex& built) { return save_index(folder, identity, built); });
}

}  // namespace accrue
