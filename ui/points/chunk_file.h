// SPDX-License-Identifier: GPL-3.0-or-later
// ChunkFile: storage for full chunks of columns, so that a run of any length needs a bounded amount of memory. The file
// has no name and ends with the program. Stored chunks are mapped: reading them is reading memory, and the kernel may
// drop their pages. If the disk is full, a chunk stays in memory. It also does if the folder is in memory or on a
// network, because a file that disappears there can no longer be read.
#pragma once

#include <QObject>
#include <QString>
#include <QThreadPool>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>

namespace accrue::ui {

/// Thread: any.
class ChunkFile : public QObject {
  Q_OBJECT

 public:
  /// Maximum size of a chunk in bytes.
  static constexpr std::size_t chunkBytes = std::size_t{1} << 14;
  /// Space kept free on the disk for the records and checkpoints of runs.
  static constexpr std::uint64_t leastFree = std::uint64_t{1} << 30;

  /// Uses a folder, which is created if necessary; nothing happens there before the first chunk.
  explicit ChunkFile(QString folder, std::uint64_t keptFree = leastFree);
  ~ChunkFile() override;
  /// The program's own file, in the cache.
  static ChunkFile& common();

  using Bytes = std::shared_ptr<const std::byte>;
  /// Writes bytes that never change again, in the background. Returns their future place, valid while it is held; null
  /// if they could not be stored.
  std::shared_future<Bytes> store(Bytes owner, std::size_t size);
  /// Bytes that were written and are still held.
  std::uint64_t storedBytes() const;

 Q_SIGNALS:
  /// Emitted the first time that a chunk could not be stored, with the reason; never if the folder is unsuitable. From
  /// any thread.
  void failed(const QString& why);

 private:
  class Places;

  Bytes write(const Bytes& bytes, std::size_t size);

  std::shared_ptr<Places> places_;  ///< shared with the stored chunks
  std::atomic<bool> told_ = false;
  QThreadPool pool_;  ///< last, so that it ends before the members that its jobs use
};

}  // namespace accrue::ui
