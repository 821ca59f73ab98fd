// SPDX-License-Identifier: Apache-2.0
// The shared part of a shared-memory group that is not data: a barrier, what each rank is calling, and who failed.
//
// The barrier counts arrivals and turns a generation word, on which late waiters sleep (futex) after a short spin: the
// spin covers ranks that arrive together, the sleep leaves the core to the rank that is waited for. A waiter wakes
// every 50 ms to ask whether a peer that has not arrived is dead or has left, and gives up when its patience is
// exhausted (patience.h). Whoever
// gives up first writes down the culprit, so that all survivors name the same rank.
//
// Messages between two ranks (shm_mail.h) use the rest: a bell each on which a rank sleeps, and whom it waits for.
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

/// What a rank is about to do; all ranks must be about to do the same.
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

  /// memory: bytes_for(ranks), zeroed before the first rank constructs this on it.
  ShmControl(const CommGroup& group, std::byte* memory);
  ~ShmControl();  ///< peers that still wait for this rank learn that it left
  ShmControl(const ShmControl&) = delete;
  ShmControl& operator=(const ShmControl&) = delete;

  /// States this rank's call and waits for all; throws CommError where a peer calls something else.
  void begin(const ShmCall& call);
  /// Waits for all ranks. Throws CommError naming the rank that died, left or did not come within the group's timeout.
  void barrier();

  /// True: calls wait for as long as all peers live.
  void set_untimed(bool untimed) { untimed_ = untimed; }
  bool untimed() const { return untimed_; }
  /// Ends a wait in another thread of this rank with a CommError, and all later ones.
  void abandon() { abandoned_ = true; }

  // For messages between two ranks, which know no barrier. `doing` is what this rank does, in words.

  enum class Cause : std::uint32_t { none, ended, left, late, other_message };
  /// The group has failed before, or this rank leaves it.
  bool broken() const;
  /// Throws CommError: why it is broken.
  [[noreturn]] void report_culprit(const std::string& doing) const;
  /// Whether a member has ended or left: it does nothing more.
  Cause gone(std::size_t member) const;
  /// Writes the culprit down, unless somebody was faster, and throws. A late member that itself waits for another one
  /// is not to blame: the one at the end of the chain is.
  [[noreturn]] void give_up(std::size_t culprit, Cause cause, const std::string& doing);
  /// While this rank waits for a message of, or room at, `member`; -1: it waits no more.
  void waits_for(std::int64_t member);
  /// This rank's bell: read, look for work, then sleep until it is rung after the reading or the time is over.
  std::uint32_t bell() const;
  void sleep(std::uint32_t heard, std::chrono::milliseconds limit) const;
  void ring(std::size_t member) const;
  /// This rank has put in or taken out a part of a message.
  void note_moved() const;
  /// How often the ranks of the group have.
  std::uint64_t moved() const;

  /// A short text of this rank's that all can read after the next barrier, at most 255 bytes.
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
  std::atomic<bool> untimed_ = false;  // the training thread sets it, others wait
  std::atomic<bool> abandoned_ = false;
};

}  // namespace accrue
