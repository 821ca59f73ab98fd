// SPDX-License-Identifier: GPL-3.0-or-later
// ChunkFile: where the chunks of columns go once they are full, so that a run of any length takes a bounded amount of
// memory. The file has no name and ends with the program. What was stored is mapped: reading it is reading memory, and
// the kernel may drop its pages whenever it needs them. Where the disk is full, a chunk stays in memory, and so it does
// where the folder is in memory or on a network: a file that is gone there cannot be read any more.
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
  /// A chunk has at most so many bytes.
  static constexpr std::size_t chunkBytes = std::size_t{1} << 14;
  /// What the disk keeps free for the runs themselves: their records and checkpoints.
  static constexpr std::uint64_t leastFree = std::uint64_t{1} << 30;

  /// In a folder, which is made if need be; nothing happens there before the first chunk.
  explicit ChunkFile(QString folder, std::uint64_t keptFree = leastFree);
  ~ChunkFile() override;
  /// The program's own, in the cache.
  static ChunkFile& common();

  using Bytes = std::shared_ptr<const std::byte>;
  /// Writes bytes that never change again, in the background. The answer is where they are from then on, as long as
  /// somebody holds it; null if they could not be stored.
  std::shared_future<Bytes> store(Bytes owner, std::size_t size);
  /// Bytes that have been written and are still held.
  std::uint64_t storedBytes() const;

 Q_SIGNALS:
  /// The first time that a chunk could not be stored, and why; never where the folder is no place for them. From any
  /// thread.
  void failed(const QString& why);

 private:
  class Places;

  Bytes write(const Bytes& bytes, std::size_t size);

  std::shared_ptr<Places> places_;  ///< shared with what was stored
  std::atomic<bool> told_ = false;
  QThreadPool pool_;  ///< last, so that it ends before what its jobs use
};

}  // namespace accrue::ui
