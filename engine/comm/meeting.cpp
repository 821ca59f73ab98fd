// SPDX-License-Identifier: Apache-2.0
// The store's own wait for workers is not used: it reports neither how many came nor which are missing.
#include "meeting.h"

#include <algorithm>
#include <string>
#include <thread>

#include "accrue/run/base/number_text.h"
#include "error_text.h"

namespace accrue {
namespace {

using Clock = std::chrono::steady_clock;

std::string rank_key(std::int64_t rank) {
  return "rank/" + std::to_string(rank);
}

Error not_all_joined(const std::vector<std::int64_t>& missing, const RankIdentity& identity,
                     const CommOptions& options) {
  const auto present = identity.world - static_cast<std::int64_t>(missing.size());
  constexpr std::size_t kNamed = 8;
  const std::string names =
      joined_up_to(kNamed, missing, [](std::int64_t rank) { return "rank " + std::to_string(rank); });
  return Error{ErrorCode::rendezvous,
               std::to_string(present) + " of " + std::to_string(identity.world) + " ranks joined within " +
                   seconds_text(options.join_timeout) + "; missing: " + names,
               identity.source,
               "See the log of the missing rank" +
                   std::string(identity.secret.empty() ? "" : ", which must have the same ACCRUE_RUN_SECRET") +
                   ", or raise " + options.join_timeout_option};
}

/// The meeting. Presence is polled: the store's wait can neither wait for two things at once (a rank, or the verdict of
/// one that gave up) nor time out quietly.
class Meeting {
 public:
  Meeting(StorePtr store, const RankIdentity& identity, const CommOptions& options)
      : store_(std::move(store)), exchange_(store_), identity_(identity), options_(options) {}

  Result<std::vector<HostIdentity>> hold() {
    try {
      const auto deadline = Clock::now() + options_.join_timeout;
      exchange_.publish(rank_key(identity_.rank), this_host().encode());
      for (auto pause = kShortestPoll; !all_present(); pause = std::min(pause * 2, kLongestPoll)) {
        if (store_->check({kVerdict})) return given_up();
        if (Clock::now() >= deadline) {
          exchange_.publish(kVerdict, "yes");
          return given_up();
        }
        std::this_thread::sleep_for(pause);
      }
      if (store_->check({kVerdict})) return given_up();  // the last one came while another rank gave up
      return everyone();
    } catch (const std::exception& error) {
      return fail(ErrorCode::rendezvous, "the meeting point was lost before all ranks had joined", identity_.source,
                  "Rank 0 hosts it and has probably ended: see its log (" + first_line(error.what()) + ")");
    }
  }

 private:
  static constexpr const char* kVerdict = "given up";
  static constexpr std::chrono::milliseconds kShortestPoll{1};
  static constexpr std::chrono::milliseconds kLongestPoll{20};
  static constexpr std::chrono::milliseconds kFarewell{1000};

  bool all_present() {
    while (present_ < identity_.world && store_->check({rank_key(present_)})) ++present_;
    return present_ == identity_.world;
  }

  /// The rank that came when another had just given up: this one, if it has seen all.
  std::int64_t latest() const { return present_ < identity_.world ? present_ : identity_.rank; }

  Result<std::vector<HostIdentity>> everyone() {
    std::vector<HostIdentity> hosts;
    for (std::int64_t rank = 0; rank < identity_.world; ++rank) {
      const auto said = exchange_.fetch(rank_key(rank), options_.join_timeout);
      const auto host = said ? HostIdentity::decode(*said) : std::nullopt;
      if (!host) {
        return fail(ErrorCode::protocol, "rank " + std::to_string(rank) + " speaks another version of Accrue",
                    identity_.source, "Start the same accrue-rank everywhere");
      }
      hosts.push_back(*host);
    }
    return hosts;
  }

  tl::unexpected<Error> given_up() {
    std::vector<std::int64_t> missing, present;
    for (std::int64_t rank = 0; rank < identity_.world; ++rank)
      (store_->check({rank_key(rank)}) ? present : missing).push_back(rank);
    if (missing.empty()) {
      missing.push_back(latest());
      std::erase(present, latest());
    }
    // The ranks that did come read the same message; otherwise they would only see the store vanish.
    take_leave(*store_, identity_.rank, identity_.rank == 0, present, kFarewell);
    return tl::unexpected(not_all_joined(missing, identity_, options_));
  }

  StorePtr store_;
  StoreExchange exchange_;
  const RankIdentity& identity_;
  const CommOptions& options_;
  std::int64_t present_ = 0;
};

}  // namespace

Result<std::vector<HostIdentity>> hold_meeting(const StorePtr& store, const RankIdentity& identity,
                                               const CommOptions& options) {
  return Meeting(store, identity, options).hold();
}

}  // namespace accrue
