// SPDX-License-Identifier: Apache-2.0
#include "shm_control.h"

#include <c10/core/ScalarType.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>

#include "accrue/comm/communicator.h"
#include "patience.h"

namespace accrue {
namespace {

constexpr int kSpins = 2000;  // some tens of microseconds; longer only takes the core from the awaited rank
constexpr std::size_t kOfferBytes = 256;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::milliseconds limit) {
  const timespec time{limit.count() / 1000, (limit.count() % 1000) * 1000000};
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, &time, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

const char* name_of(ShmOp op) {
  static const char* const names[] = {"nothing",   "all_reduce", "reduce_scatter", "all_gather",
                                      "broadcast", "barrier",    "shared_buffer"};
  const auto index = static_cast<std::size_t>(op);
  return index < std::size(names) ? names[index] : "an unknown collective";
}

std::string text_of(const ShmCall& call) {
  std::string text = name_of(call.op);
  if (call.numel == 0) return text;
  text += " of " + std::to_string(call.numel) + " " + c10::toString(static_cast<c10::ScalarType>(call.dtype));
  if (call.place >= 0) text += " in the shared buffer at " + std::to_string(call.place);
  if (call.op == ShmOp::broadcast) return text + " from member " + std::to_string(call.detail);
  return call.detail == static_cast<std::int64_t>(Reduce::max) ? text + " (maximum)" : text;
}

}  // namespace

struct alignas(64) ShmControl::Header {
  std::atomic<std::uint32_t> arrived;
  alignas(64) std::atomic<std::uint32_t> generation;
  alignas(64) std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint64_t> culprit;  ///< 0, or (member + 1) << 32 | Cause; written once
};

struct alignas(64) ShmControl::Slot {
  std::atomic<std::uint64_t> reached;  ///< barriers this rank has arrived at
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> bell;       ///< incremented whenever a peer has changed something for this rank
  std::atomic<std::uint32_t> heard;      ///< the bell when this rank last read it
  std::atomic<std::uint64_t> moved;      ///< parts of messages that this rank has added or removed
  std::atomic<std::uint32_t> waits_for;  ///< member + 1 whose message or room this rank waits for; 0: none
  // Two, by the parity of the call: a rank may publish its next call while a slower one still compares this one.
  ShmCall calls[2];
  char offer[kOfferBytes];
};

std::size_t ShmControl::bytes_for(std::int64_t ranks) {
  return sizeof(Header) + sizeof(Slot) * static_cast<std::size_t>(ranks);
}

ShmControl::ShmControl(const CommGroup& group, std::byte* memory) : group_(group), watch_(group), memory_(memory) {
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);
}

ShmControl::~ShmControl() {
  slot(static_cast<std::size_t>(group_.rank)).left.store(1, std::memory_order_release);
}

// Zeroed memory is a valid state of every member, so no rank has to construct it for the others.
ShmControl::Header& ShmControl::header() const {
  return *reinterpret_cast<Header*>(memory_);
}

ShmControl::Slot& ShmControl::slot(std::size_t member) const {
  return reinterpret_cast<Slot*>(memory_ + sizeof(Header))[member];
}

std::string ShmControl::doing() const {
  return text_of(current_) + " (call " + std::to_string(calls_) + " on the " + group_.axis + " axis)";
}

void ShmControl::begin(const ShmCall& call) {
  current_ = call;
  const std::size_t parity = ++calls_ % 2;
  slot(static_cast<std::size_t>(group_.rank)).calls[parity] = call;
  barrier();
  for (std::size_t member = 0; member < group_.members.size(); ++member) {
    const ShmCall& other = slot(member).calls[parity];
    if (other == call) continue;
    throw CommError("the ranks call different collectives: this rank " + doing() + ", " + group_.name_of(member) + " " +
                    text_of(other) + "; all ranks of an axis must call the same ones in the same order");
  }
}

void ShmControl::barrier() {
  Header& shared = header();
  if (broken()) report_culprit(doing());
  const std::uint32_t generation = shared.generation.load(std::memory_order_acquire);
  slot(static_cast<std::size_t>(group_.rank)).reached.store(++arrivals_, std::memory_order_release);
  if (shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == group_.members.size()) {
    shared.arrived.store(0, std::memory_order_relaxed);
    // Both are seq_cst: either this load sees the sleeper, or the sleeper's futex call sees the new generation.
    shared.generation.store(generation + 1);
    if (shared.sleepers.load() != 0) futex_wake_all(shared.generation);
    return;
  }
  for (int spin = 0; spin < kSpins; ++spin) {
    if (shared.generation.load(std::memory_order_acquire) != generation) return;
    pause_core();
  }
  shared.sleepers.fetch_add(1);
  try {
    sleep_until_turned(generation);
  } catch (...) {
    shared.sleepers.fetch_sub(1);
    throw;
  }
  shared.sleepers.fetch_sub(1);
}

void ShmControl::sleep_until_turned(std::uint32_t generation) {
  Header& shared = header();
  const auto turned = [&] { return shared.generation.load(std::memory_order_acquire) != generation; };
  Patience patience(group_.timeout, untimed_);
  for (;;) {
    futex_wait(shared.generation, generation, patience.slice());
    if (turned()) return;
    if (broken()) report_culprit(doing());
    for (std::size_t member = 0; member < group_.members.size(); ++member) {
      // The order matters: a rank that ended after it arrived is not a failure, which only the last check can tell.
      const Cause cause = gone(member);
      if (cause == Cause::none || slot(member).reached.load(std::memory_order_acquire) >= arrivals_) continue;
      give_up(member, cause, doing());
    }
    if (turned()) return;
    if (patience.exhausted()) time_out();
  }
}

ShmControl::Cause ShmControl::gone(std::size_t member) const {
  if (watch_.ended(member)) return Cause::ended;
  return slot(member).left.load(std::memory_order_acquire) != 0 ? Cause::left : Cause::none;
}

bool ShmControl::broken() const {
  return abandoned_ || header().culprit.load(std::memory_order_acquire) != 0;
}

/// Follows the chain of waits from a late member to its end. A rank that does not read its bell is stopped, whatever it
/// waited for before. A ring of ranks that wait for each other has no end.
std::size_t ShmControl::end_of_chain(std::size_t member) const {
  for (std::size_t step = 0; step < group_.members.size(); ++step) {
    const std::uint32_t awaited = slot(member).waits_for.load(std::memory_order_acquire);
    if (awaited > 0 && slot(member).heard.load() != slot(member).bell.load()) return member;
    std::size_t next = awaited > 0 ? awaited - 1 : member;
    const std::uint64_t reached = slot(member).reached.load(std::memory_order_acquire);
    for (std::size_t other = 0; awaited == 0 && next == member && other < group_.members.size(); ++other) {
      if (slot(other).reached.load(std::memory_order_acquire) < reached) next = other;
    }
    if (next == member || next == static_cast<std::size_t>(group_.rank)) return member;
    member = next;
  }
  return member;
}

void ShmControl::give_up(std::size_t culprit, Cause cause, const std::string& doing) {
  if (cause == Cause::late) culprit = end_of_chain(culprit);
  std::uint64_t none = 0;
  header().culprit.compare_exchange_strong(
      none, (static_cast<std::uint64_t>(culprit) + 1) << 32 | static_cast<std::uint64_t>(cause));
  futex_wake_all(header().generation);
  for (std::size_t member = 0; member < group_.members.size(); ++member) ring(member);
  report_culprit(doing);
}

void ShmControl::report_culprit(const std::string& doing) const {
  const std::uint64_t word = header().culprit.load();
  if (word == 0) throw CommError("this rank left the group in " + doing);
  const std::string who = group_.name_of((word >> 32) - 1);
  switch (static_cast<Cause>(word & 0xffffffffU)) {
    case Cause::ended:
      throw CommError(who + " ended while the others waited for it in " + doing);
    case Cause::left:
      throw CommError(who + " left the group while the others waited for it in " + doing);
    case Cause::other_message:
      throw CommError(who + " sent another message than was to be received; this rank was in " + doing);
    default:
      throw CommError(who + " did not come " + group_.within() + " to " + doing);
  }
}

void ShmControl::time_out() {
  for (std::size_t member = 0; member < group_.members.size(); ++member) {
    if (slot(member).reached.load(std::memory_order_acquire) < arrivals_) give_up(member, Cause::late, doing());
  }
  // All had arrived after all; only the wake-up was lost to a stopped clock.
  throw CommError("no progress " + group_.within() + " in " + doing());
}

void ShmControl::waits_for(std::int64_t member) {
  slot(static_cast<std::size_t>(group_.rank))
      .waits_for.store(static_cast<std::uint32_t>(member + 1), std::memory_order_release);
}

std::uint32_t ShmControl::bell() const {
  return slot(static_cast<std::size_t>(group_.rank)).bell.load();
}

void ShmControl::sleep(std::uint32_t heard, std::chrono::milliseconds limit) const {
  Slot& mine = slot(static_cast<std::size_t>(group_.rank));
  mine.heard.store(heard);
  futex_wait(mine.bell, heard, limit);
}

void ShmControl::ring(std::size_t member) const {
  slot(member).bell.fetch_add(1);
  futex_wake_all(slot(member).bell);
}

void ShmControl::note_moved() const {
  slot(static_cast<std::size_t>(group_.rank)).moved.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t ShmControl::moved() const {
  std::uint64_t all = 0;
  for (std::size_t member = 0; member < group_.members.size(); ++member)
    all += slot(member).moved.load(std::memory_order_relaxed);
  return all;
}

void ShmControl::offer(const std::string& text) {
  char* mine = slot(static_cast<std::size_t>(group_.rank)).offer;
  const std::size_t length = std::min(text.size(), kOfferBytes - 1);
  std::memcpy(mine, text.data(), length);
  mine[length] = '\0';
}

std::string ShmControl::offered(std::size_t member) const {
  return slot(member).offer;
}

}  // namespace accrue
