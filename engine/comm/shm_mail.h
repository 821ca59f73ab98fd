// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of a shared-memory group. Each ordered pair has a box of two chunks, which the sender
// fills and the receiver empties; a larger message passes in pieces. A message moves as soon as possible: at once in
// the caller's thread, else in the mail's own thread. So two ranks may send to each other, and a message of one group
// continues while the caller waits in another.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "accrue/comm/communicator.h"
#include "shm_control.h"

namespace accrue {

class ShmMail {
 public:
  static std::size_t bytes_for(std::int64_t ranks);

  /// memory: bytes_for(ranks) bytes, zeroed before the first rank constructs this on it. control must outlive this.
  ShmMail(const CommGroup& group, ShmControl& control, std::byte* memory);
  ~ShmMail();
  ShmMail(const ShmMail&) = delete;
  ShmMail& operator=(const ShmMail&) = delete;

  std::unique_ptr<PendingCall> send(at::Tensor tensor, std::size_t to, MessageLabel label);
  std::unique_ptr<PendingCall> receive(at::Tensor tensor, std::size_t from, MessageLabel label);

 private:
  enum class Way : std::uint8_t { out, in };
  struct Box;
  struct Letter;
  class Pending;

  Box& box(std::size_t from, std::size_t to) const;
  std::byte* chunk(std::size_t from, std::size_t to, std::uint64_t number) const;
  std::unique_ptr<PendingCall> post(Way way, at::Tensor tensor, std::size_t peer, MessageLabel label);
  std::int64_t wait(Letter& letter);
  std::string text_of(const Letter& letter) const;

  // Call under the mutex.
  bool move(Letter& letter);
  bool put_chunk(Letter& letter);
  bool take_chunk(Letter& letter);
  bool move_all();
  void look_for_the_gone();
  void advance();
  void end_first(std::deque<std::shared_ptr<Letter>>& line);
  void fail_all();

  void run();

  CommGroup group_;
  ShmControl& control_;
  std::byte* memory_;
  std::size_t chunk_bytes_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<std::deque<std::shared_ptr<Letter>>> lines_;  ///< by peer and direction, in call order
  std::size_t pending_ = 0;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace accrue
