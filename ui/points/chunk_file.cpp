// SPDX-License-Identifier: GPL-3.0-or-later
#include "chunk_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <QDir>
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "kit/app_paths.h"
#include "kit/number_text.h"

namespace accrue::ui {

namespace {

/// A file in memory saves nothing, and mapped data over a network may be gone when read. The last three are CIFS, SMB 2
/// and FUSE, which older kernel headers lack.
constexpr std::uint32_t unsuitable[] = {TMPFS_MAGIC, RAMFS_MAGIC, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,
                                        0xFF534D42,  0xFE534D42,  0x65735546};

}  // namespace

/// The file as places of one chunk each, mapped in segments. A place is free again when its chunk is no longer held.
class ChunkFile::Places : public std::enable_shared_from_this<Places> {
 public:
  Places(QString folder, std::uint64_t keptFree) : folder_(std::move(folder)), keptFree_(keptFree) {}
  ~Places() {
    for (void* segment : segments_) ::munmap(segment, segmentBytes);
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  /// Null on failure; problem() has the reason. Thread: one at a time.
  Bytes put(const std::byte* bytes, std::size_t size) {
    const std::optional<std::size_t> place = take();
    if (!place) return nullptr;
    if (!write(bytes, size, *place)) {
      giveBack(*place);
      return nullptr;
    }
    {
      const std::lock_guard lock(mutex_);
      ++stored_;
    }
    if (++written_ % droppedAfter == 0) dropPages();
    const auto* at = static_cast<const std::byte*>(segments_[*place / segmentPlaces]) + offsetIn(*place);
    return {at, [self = shared_from_this(), place = *place](const std::byte*) { self->release(place); }};
  }

  std::uint64_t stored() const {
    const std::lock_guard lock(mutex_);
    return stored_;
  }
  /// Reason why the last chunk could not be stored; empty if that is expected. Thread: that of put().
  const QString& problem() const { return problem_; }
  const QString& folder() const { return folder_; }

 private:
  static constexpr std::size_t segmentPlaces = 1024;
  static constexpr std::size_t segmentBytes = segmentPlaces * chunkBytes;
  /// After so many chunks the pages read since are released; the kernel still caches them.
  static constexpr std::uint64_t droppedAfter = 64;

  static std::size_t offsetIn(std::size_t place) { return place % segmentPlaces * chunkBytes; }

  std::optional<std::size_t> take() {
    {
      const std::lock_guard lock(mutex_);
      if (const auto place = takeFree()) return place;
    }
    if (!grow()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 1; i <= segmentPlaces; ++i) free_.push_back(segments_.size() * segmentPlaces - i);
    return takeFree();
  }

  std::optional<std::size_t> takeFree() {
    if (free_.empty()) return std::nullopt;
    const std::size_t place = free_.back();
    free_.pop_back();
    return place;
  }

  void giveBack(std::size_t place) {
    const std::lock_guard lock(mutex_);
    free_.push_back(place);
  }

  void release(std::size_t place) {
    const std::lock_guard lock(mutex_);
    free_.push_back(place);
    --stored_;
  }

  /// Takes errno as the problem.
  bool failed() {
    problem_ = qt_error_string(errno);
    return false;
  }

  /// Adds a segment. Its disk space is allocated at once, so that none of its pages meets a full disk later.
  bool grow() {
    if (!file_ && !open()) return false;
    struct statfs disk = {};
    if (::fstatfs(file_.get(), &disk) != 0) return failed();
    if (std::ranges::find(unsuitable, static_cast<std::uint32_t>(disk.f_type)) != std::end(unsuitable)) {
      problem_.clear();
      return false;
    }
    const std::uint64_t left = static_cast<std::uint64_t>(disk.f_bavail) * static_cast<std::uint64_t>(disk.f_bsize);
    if (left < keptFree_ || left - keptFree_ < segmentBytes) {
      constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      //: %1 a number of bytes on the disk
      problem_ = ChunkFile::tr("less than %1 would stay free")
                     .arg(bytesText(static_cast<std::int64_t>(std::min(keptFree_, most))));
      return false;
    }
    const auto end = static_cast<off_t>(segments_.size() * segmentBytes);
    if (::fallocate(file_.get(), 0, end, segmentBytes) != 0) return failed();
    void* segment = ::mmap(nullptr, segmentBytes, PROT_READ, MAP_SHARED, file_.get(), end);
    if (segment == MAP_FAILED) return failed();
    segments_.push_back(segment);
    return true;
  }

  bool open() {
    QDir().mkpath(folder_);
    file_ = nameless_file(folder_.toStdString());
    return file_ || failed();
  }

  bool write(const std::byte* bytes, std::size_t size, std::size_t place) {
    auto at = static_cast<off_t>(place * chunkBytes);
    while (size > 0) {
      const ssize_t count = ::pwrite(file_.get(), bytes, size, at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return failed();
      bytes += count;
      at += count;
      size -= static_cast<std::size_t>(count);
    }
    return true;
  }

  void dropPages() const {
    for (void* segment : segments_) ::madvise(segment, segmentBytes, MADV_DONTNEED);
  }

  const QString folder_;
  const std::uint64_t keptFree_;
  OwnedFd file_;
  std::vector<void*> segments_;
  std::uint64_t written_ = 0;
  QString problem_;
  mutable std::mutex mutex_;  // guards the following members
  std::vector<std::size_t> free_;
  std::uint64_t stored_ = 0;
};

ChunkFile::ChunkFile(QString folder, std::uint64_t keptFree)
    : places_(std::make_shared<Places>(std::move(folder), keptFree)) {
  pool_.setMaxThreadCount(1);
}

ChunkFile::~ChunkFile() {
  pool_.waitForDone();
}

ChunkFile& ChunkFile::common() {
  static ChunkFile file(appPaths().cache_dir);
  return file;
}

std::shared_future<ChunkFile::Bytes> ChunkFile::store(Bytes owner, std::size_t size) {
  auto answer = std::make_shared<std::promise<Bytes>>();
  std::shared_future<Bytes> stored = answer->get_future().share();
  pool_.start([this, answer, size, owner = std::move(owner)] { answer->set_value(write(owner, size)); });
  return stored;
}

ChunkFile::Bytes ChunkFile::write(const Bytes& bytes, std::size_t size) {
  Bytes stored = places_->put(bytes.get(), size);
  if (stored || places_->problem().isEmpty() || told_.exchange(true)) return stored;
  Q_EMIT failed(QStringLiteral("%1: %2").arg(places_->folder(), places_->problem()));
  return nullptr;
}

std::uint64_t ChunkFile::storedBytes() const {
  return places_->stored() * chunkBytes;
}

}  // namespace accrue::ui
