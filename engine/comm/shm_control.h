// SPDX-License-Identifier: Apache-2.0
// Control block of a shared-memory group: a barrier, each rank's current call, and the failed rank.
//
// The barrier counts arrivals and increments a generation word, on which late waiters sleep (futex) after a short spin.
// The spin serves ranks that arrive together; the sleep frees the core for the rank that is awaited. A waiter wakes
// every 50 ms to check whether a peer that has not arrived is dead or has left. It gives up when its patience is
// exhausted (patience.h). The first rank that gives up records the culprit, so all survivors name the same rank.
//
// Messages between two ranks (shm_mail.h) use the rest: a bell per rank, on which it sleeps, and the rank that it waits
// for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "group.h"
#include "peer_watch.h"
#include "shared_segment.h"

namespace accrue {

enum class ShmOp : std::uint32_t { none, all_reduce, reduce_scatter, all_gather, broadcast, barrier, shared_buffer };

/// The call that a rank is about to make; it must be the same on all ranks.
struct ShmCall {
  ShmOp op = ShmOp::none;
  std::int32_t dtype = 0;
  std::int64_t numel = 0;
  std::int64_t detail = 0;  ///< reduction or root
  std::int64_t place = -1;  ///< offset in a shared buffer, or -1 for an ordinary tensor
  bool operator==(const ShmCall&) const = default;
};

class ShmControl {
 public:
  static std::size_t bytes_for(std::int64_t ranks);

  /// memory: bytes_for(ranks) bytes, zeroed before the first rank constructs this on it.
  ShmControl(const CommGroup& group, std::byte* memory);
  ~ShmControl();  ///< informs peers that still wait for this rank
  ShmControl(const ShmControl&) = delete;
  ShmControl& operator=(const ShmControl&) = delete;

  /// Publishes this rank's call and waits for all; throws CommError if a peer calls something else.
  void begin(const ShmCall& call);
  /// Waits for all ranks. Throws CommError that names the rank that died, left or missed the group's timeout.
  void barrier();

  /// If true, calls wait as long as all peers live.
  void set_untimed(bool untimed) { untimed_ = untimed; }
  bool untimed() const { return untimed_; }
  /// Ends a wait in another thread of this rank with a CommError, and all later ones.
  void abandon() { abandoned_ = true; }

  // For messages between two ranks, which need no barrier. `doing`: this rank's action, in words.

  enum class Cause : std::uint32_t { none, ended, left, late, other_message };
  /// Whether the group has failed, or this rank is leaving it.
  bool broken() const;
  /// Throws CommError with the reason.
  [[noreturn]] void report_culprit(const std::string& doing) const;
  /// Whether a member has ended or left, and so does nothing more.
  Cause gone(std::size_t member) const;
  /// Records the culprit, unless another rank was faster, and throws. A late member that waits for another one is not
  /// to blame: the last one of the chain is.
  [[noreturn]] void give_up(std::size_t culprit, Cause cause, const std::string& doing);
  /// Sets the member from which this rank waits for a message or for room; -1: none.
  void waits_for(std::int64_t member);
  /// This rank's bell: read it, look for work, then sleep until it rings after the reading or the time is over.
  std::uint32_t bell() const;
  void sleep(std::uint32_t heard, std::chrono::milliseconds limit) const;
  void ring(std::size_t member) const;
  /// This rank has added or removed a part of a message.
  void note_moved() const;
  /// Number of such moves of all ranks of the group.
  std::uint64_t moved() const;

  /// Publishes a short text of this rank, at most 255 bytes, which all can read after the next barrier.
  void offer(const std::string& text);
  std::string offered(std::size_t member) const;

 private:
  struct Header;
  struct Slot;

  Header& header() const;
  Slot& slot(std::size_t member) const;
  void sleep_until_turned(std::uint32_t generation);
  std::size_t end_of_chain(std::size_t member) const;
  [[noreturn]] void time_out();
  std::string doing() const;

  CommGroup group_;
  PeerWatch watch_;
  std::byte* memory_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t calls_ = 0;
  ShmCall current_;
  std::atomic<bool> untimed_ = false;  // the training thread sets it, other threads read it
  std::atomic<bool> abandoned_ = false;
};

}  // namespace accrue
