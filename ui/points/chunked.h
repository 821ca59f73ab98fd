// SPDX-License-Identifier: GPL-3.0-or-later
// Chunked: an array that grows at its end, in chunks. Full chunks never move or change again and go to a file. So a
// live series of any length needs a few chunks of memory and never pauses for copying. A copy shares the chunks and
// costs almost nothing. Another thread may read it while the original grows; only one of the two may grow.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "chunk_file.h"

namespace accrue::ui {

template <typename T>
class Chunked {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>);
  static_assert(sizeof(T) <= ChunkFile::chunkBytes);

 public:
  static constexpr std::size_t chunkSize = std::bit_floor(ChunkFile::chunkBytes / sizeof(T));

  explicit Chunked(ChunkFile& file = ChunkFile::common()) : file_(&file) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T operator[](std::size_t i) const { return chunks_[i / chunkSize].get()[i % chunkSize]; }
  T back() const { return (*this)[size_ - 1]; }

  void push(T value) {
    if (size_ == chunks_.size() * chunkSize)
      beginChunk();
    else if (size_ % chunkSize == room_)
      own(std::min(2 * room_, chunkSize));
    open_.get()[size_ % chunkSize] = value;
    ++size_;
  }
  /// Sets the last value. Copies that share the last chunk see it too, so use it only for columns that no other thread
  /// reads.
  void setBack(T value) { open_.get()[(size_ - 1) % chunkSize] = value; }

  /// Keeps the first `size` elements.
  void truncate(std::size_t size) {
    if (size >= size_) return;
    size_ = size;
    chunks_.resize((size + chunkSize - 1) / chunkSize);
    // The last chunk may be in the file, and a copy may hold the place of the next elements.
    std::erase_if(leaving_, [this](const Leaving& chunk) { return chunk.index + 1 >= chunks_.size(); });
    open_.reset();
    if (size > 0) own(chunkSize);
  }

 private:
  static constexpr std::size_t firstRoom = 64;

  struct Leaving {
    std::size_t index = 0;
    std::shared_future<ChunkFile::Bytes> stored;
  };

  void beginChunk() {
    takeStored();
    if (open_) {
      const ChunkFile::Bytes bytes(open_, reinterpret_cast<const std::byte*>(open_.get()));
      leaving_.push_back({chunks_.size() - 1, file_->store(bytes, chunkSize * sizeof(T))});
    }
    room_ = chunks_.empty() ? firstRoom : chunkSize;
    open_ = make(room_);
    chunks_.push_back(open_);
  }

  /// Replaces chunks by their stored forms, as far as they were written since.
  void takeStored() {
    std::erase_if(leaving_, [this](const Leaving& chunk) {
      if (chunk.stored.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
      if (const ChunkFile::Bytes& bytes = chunk.stored.get())
        chunks_[chunk.index] = std::shared_ptr<const T>(bytes, reinterpret_cast<const T*>(bytes.get()));
      return true;
    });
  }

  /// Copies the last chunk, with `room` elements, for this array alone.
  void own(std::size_t room) {
    std::shared_ptr<T> fresh = make(room);
    std::copy_n(chunks_.back().get(), size_ - (chunks_.size() - 1) * chunkSize, fresh.get());
    room_ = room;
    open_ = std::move(fresh);
    chunks_.back() = open_;
  }

  static std::shared_ptr<T> make(std::size_t room) {
    const std::shared_ptr<T[]> elements = std::make_shared<T[]>(room);
    return {elements, elements.get()};
  }

  ChunkFile* file_;
  std::vector<std::shared_ptr<const T>> chunks_;
  std::shared_ptr<T> open_;  // the last chunk, which may be written
  std::size_t room_ = 0;     // its capacity in elements
  std::size_t size_ = 0;
  std::vector<Leaving> leaving_;  // full chunks that are being written
};

}  // namespace accrue::ui
