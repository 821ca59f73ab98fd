// SPDX-License-Identifier: GPL-3.0-or-later
// Chunked: an append-only array in fixed blocks. Growing never moves existing elements, so a live series of a million
// points has no pauses for copying and no spare capacity beyond one block. A copy shares the blocks, so it costs next
// to nothing, and another thread may read it while the original grows: only one of the two may, as they share a block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace accrue::ui {

template <typename T>
class Chunked {
 public:
  static constexpr std::size_t chunkSize = 4096;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T operator[](std::size_t i) const { return chunks_[i / chunkSize][i % chunkSize]; }
  T back() const { return (*this)[size_ - 1]; }

  void push(T value) {
    if (size_ == chunks_.size() * chunkSize) chunks_.push_back(std::make_shared<T[]>(chunkSize));
    chunks_[size_ / chunkSize][size_ % chunkSize] = value;
    ++size_;
  }
  /// Keeps the first `size` elements.
  void truncate(std::size_t size) {
    if (size >= size_) return;
    size_ = size;
    chunks_.resize((size + chunkSize - 1) / chunkSize);
    if (size % chunkSize == 0) return;
    // A copy may hold what the next elements would be written over.
    auto own = std::make_shared<T[]>(chunkSize);
    std::copy_n(chunks_.back().get(), size % chunkSize, own.get());
    chunks_.back() = std::move(own);
  }

 private:
  std::vector<std::shared_ptr<T[]>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace accrue::ui
