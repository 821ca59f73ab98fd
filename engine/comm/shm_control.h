// SPDX-License-Identifier: Apache-2.0
// The shared part of a shared-memory group that is not data: a barrier, what each rank is calling, and who failed.
//
// The barrier counts arrivals and turns a generation word, on which late waiters sleep (futex) after a short spin: the
// spin covers ranks that arrive together, the sleep leaves the core to the rank that is waited for. A waiter wakes
// every 50 ms to ask whether a peer that has not arrived is dead or has left, and gives up when its patience is
// exhausted (patience.h). Whoever
// gives up first writes down the culprit, so that all survivors name the same rank.
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

/// What a rank is about to do; all ranks must be about to do the same.
struct ShmCall {
  std::uint32_t op = 0;
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

  /// True: barriers wait for as long as all peers live.
  void set_untimed(bool untimed) { untimed_ = untimed; }

  /// A short text of this rank's that all can read after the next barrier, at most 255 bytes.
  void offer(const std::string& text);
  std::string offered(std::size_t member) const;

 private:
  struct Header;
  struct Slot;

  Header& header() const;
  Slot& slot(std::size_t member) const;
  void sleep_until_turned(std::uint32_t generation);
  enum class Cause : std::uint32_t { none, ended, left, late };
  [[noreturn]] void give_up(std::size_t culprit, Cause cause);
  [[noreturn]] void report_culprit() const;
  [[noreturn]] void time_out();
  std::string doing() const;

  CommGroup group_;
  PeerWatch watch_;
  std::byte* memory_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t calls_ = 0;
  ShmCall current_;
  bool untimed_ = false;
};

}  // namespace accrue
