// SPDX-License-Identifier: Apache-2.0
#include "shm_mail.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <utility>

#include "accrue/run/base/monotonic_clock.h"
#include "patience.h"

namespace accrue {
namespace {

constexpr std::size_t kChunks = 2;
constexpr std::size_t kLargestChunk = std::size_t{1} << 18;
constexpr std::size_t kSmallestChunk = 4096;
constexpr std::size_t kRankBytes = std::size_t{1} << 20;  // of all boxes that one rank fills, if chunks can be smaller
constexpr std::chrono::milliseconds kIdle{3'600'000};     // until a bell wakes it

std::size_t chunk_bytes_for(std::size_t ranks) {
  const std::size_t fair = kRankBytes / kChunks / ranks / kSmallestChunk * kSmallestChunk;
  return std::clamp(fair, kSmallestChunk, kLargestChunk);
}

}  // namespace

struct alignas(64) ShmMail::Box {
  std::atomic<std::uint64_t> filled;  ///< chunks that the sender has added
  alignas(64) std::atomic<std::uint64_t> emptied;
  alignas(64) struct Content {
    MessageLabel label;
    std::int64_t numel;
    std::int32_t dtype;
    bool operator==(const Content&) const = default;
    std::string text() const {
      const std::string what = label == MessageLabel() ? "" : label.text() + ", ";
      return what + std::to_string(numel) + " " + c10::toString(static_cast<c10::ScalarType>(dtype));
    }
  } contents[kChunks];  ///< message of a chunk
};

struct ShmMail::Letter {
  Way way;
  std::size_t peer;
  MessageLabel label;
  at::Tensor tensor;
  std::byte* data;
  std::size_t bytes;
  std::size_t moved = 0;
  bool begun = false;  ///< an empty message is one empty chunk
  bool ended = false;
  std::exception_ptr failure = nullptr;
  std::int64_t end_ns = 0;

  bool done() const { return begun && moved == bytes; }
  Box::Content content() const { return {label, tensor.numel(), static_cast<std::int32_t>(tensor.scalar_type())}; }
};

class ShmMail::Pending final : public PendingCall {
 public:
  Pending(ShmMail& mail, std::shared_ptr<Letter> letter) : mail_(mail), letter_(std::move(letter)) {}
  std::int64_t wait() override { return mail_.wait(*letter_); }

 private:
  ShmMail& mail_;
  std::shared_ptr<Letter> letter_;
};

std::size_t ShmMail::bytes_for(std::int64_t ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return n * n * (sizeof(Box) + kChunks * chunk_bytes_for(n));
}

ShmMail::ShmMail(const CommGroup& group, ShmControl& control, std::byte* memory)
    : group_(group),
      control_(control),
      memory_(memory),
      chunk_bytes_(chunk_bytes_for(group.members.size())),
      lines_(group.members.size() * 2) {}

ShmMail::~ShmMail() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  control_.ring(static_cast<std::size_t>(group_.rank));
  if (thread_.joinable()) thread_.join();
}

ShmMail::Box& ShmMail::box(std::size_t from, std::size_t to) const {
  return reinterpret_cast<Box*>(memory_)[from * group_.members.size() + to];
}

std::byte* ShmMail::chunk(std::size_t from, std::size_t to, std::uint64_t number) const {
  const std::size_t ranks = group_.members.size();
  const std::size_t index = (from * ranks + to) * kChunks + static_cast<std::size_t>(number % kChunks);
  return memory_ + ranks * ranks * sizeof(Box) + index * chunk_bytes_;
}

std::unique_ptr<PendingCall> ShmMail::send(at::Tensor tensor, std::size_t to, MessageLabel label) {
  return post(Way::out, std::move(tensor), to, label);
}

std::unique_ptr<PendingCall> ShmMail::receive(at::Tensor tensor, std::size_t from, MessageLabel label) {
  return post(Way::in, std::move(tensor), from, label);
}

std::unique_ptr<PendingCall> ShmMail::post(Way way, at::Tensor tensor, std::size_t peer, MessageLabel label) {
  void* data = way == Way::in ? tensor.mutable_data_ptr() : const_cast<void*>(tensor.const_data_ptr());
  const std::size_t bytes = tensor.nbytes();
  auto letter = std::make_shared<Letter>(Letter{.way = way,
                                                .peer = peer,
                                                .label = label,
                                                .tensor = std::move(tensor),
                                                .data = static_cast<std::byte*>(data),
                                                .bytes = bytes});
  {
    const std::lock_guard lock(mutex_);
    if (control_.broken()) control_.report_culprit(text_of(*letter));
    lines_[peer * 2 + static_cast<std::size_t>(way)].push_back(letter);
    ++pending_;
    advance();
    if (!letter->ended) {
      control_.ring(static_cast<std::size_t>(group_.rank));
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    }
  }
  return std::make_unique<Pending>(*this, std::move(letter));
}

std::string ShmMail::text_of(const Letter& letter) const {
  return (letter.way == Way::out ? "send of " : "receive of ") + letter.content().text() +
         (letter.way == Way::out ? " to rank " : " from rank ") +
         std::to_string(group_.members[letter.peer].world_rank) + " on the " + group_.axis + " axis";
}

/// Time counts while the caller waits here, not while it computes. While any two ranks of the group exchange something,
/// no rank is given up: a stage may have to do much work before it can send.
std::int64_t ShmMail::wait(Letter& letter) {
  std::unique_lock lock(mutex_);
  if (!letter.ended) {
    control_.waits_for(static_cast<std::int64_t>(letter.peer));
    std::uint64_t before = control_.moved();
    Patience patience(group_.timeout, control_.untimed());
    while (!moved_.wait_for(lock, patience.slice(), [&] { return letter.ended; })) {
      if (const std::uint64_t now = control_.moved(); now != before) {
        before = now;
        patience = Patience(group_.timeout, control_.untimed());
      }
      if (!patience.exhausted()) continue;
      try {
        control_.give_up(letter.peer, ShmControl::Cause::late, text_of(letter));
      } catch (...) {
        fail_all();
      }
    }
    control_.waits_for(-1);
  }
  if (letter.failure) std::rethrow_exception(letter.failure);
  return letter.end_ns;
}

/// Moves what can be moved; returns whether anything was.
bool ShmMail::move(Letter& letter) {
  bool any = false;
  while (!letter.done() && (letter.way == Way::out ? put_chunk(letter) : take_chunk(letter))) any = true;
  if (!any) return false;
  control_.note_moved();
  control_.ring(letter.peer);
  return true;
}

bool ShmMail::put_chunk(Letter& letter) {
  const auto mine = static_cast<std::size_t>(group_.rank);
  Box& to = box(mine, letter.peer);
  const std::uint64_t number = to.filled.load(std::memory_order_relaxed);
  if (number - to.emptied.load(std::memory_order_acquire) == kChunks) return false;
  const std::size_t n = std::min(chunk_bytes_, letter.bytes - letter.moved);
  to.contents[number % kChunks] = letter.content();
  if (n > 0) std::memcpy(chunk(mine, letter.peer, number), letter.data + letter.moved, n);
  letter.moved += n;
  letter.begun = true;
  to.filled.store(number + 1, std::memory_order_release);
  return true;
}

bool ShmMail::take_chunk(Letter& letter) {
  const auto mine = static_cast<std::size_t>(group_.rank);
  Box& from = box(letter.peer, mine);
  const std::uint64_t number = from.emptied.load(std::memory_order_relaxed);
  if (from.filled.load(std::memory_order_acquire) == number) return false;
  const Box::Content content = from.contents[number % kChunks];
  if (content != letter.content())
    control_.give_up(letter.peer, ShmControl::Cause::other_message,
                     text_of(letter) + ", and it sends " + content.text());
  const std::size_t n = std::min(chunk_bytes_, letter.bytes - letter.moved);
  if (n > 0) std::memcpy(letter.data + letter.moved, chunk(letter.peer, mine, number), n);
  letter.moved += n;
  letter.begun = true;
  from.emptied.store(number + 1, std::memory_order_release);
  return true;
}

void ShmMail::end_first(std::deque<std::shared_ptr<Letter>>& line) {
  Letter& letter = *line.front();
  letter.end_ns = monotonic_ns();
  letter.tensor.reset();
  letter.ended = true;
  line.pop_front();
  --pending_;
  moved_.notify_all();
}

bool ShmMail::move_all() {
  bool any = false;
  for (auto& line : lines_) {
    while (!line.empty()) {
      any |= move(*line.front());
      if (!line.front()->done()) break;
      end_first(line);
    }
  }
  return any;
}

/// A peer that has ended or left after it put everything into the box is not a failure, which only a last check can
/// tell.
void ShmMail::look_for_the_gone() {
  for (auto& line : lines_) {
    if (line.empty()) continue;
    Letter& letter = *line.front();
    const ShmControl::Cause cause = control_.gone(letter.peer);
    if (cause != ShmControl::Cause::none && !move(letter)) control_.give_up(letter.peer, cause, text_of(letter));
  }
}

void ShmMail::advance() {
  try {
    while (move_all()) {
    }
    if (pending_ == 0) return;
    for (const auto& line : lines_) {
      if (!line.empty() && control_.broken()) control_.report_culprit(text_of(*line.front()));
    }
    look_for_the_gone();
    move_all();
  } catch (...) {
    fail_all();
  }
}

/// Uses the exception being handled.
void ShmMail::fail_all() {
  for (auto& line : lines_) {
    while (!line.empty()) {
      line.front()->failure = std::current_exception();
      end_first(line);
    }
  }
}

void ShmMail::run() {
  for (;;) {
    const std::uint32_t heard = control_.bell();
    std::size_t left = 0;
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
      advance();
      left = pending_;
    }
    control_.sleep(heard, left > 0 ? Patience::kSlice : kIdle);
  }
}

}  // namespace accrue
