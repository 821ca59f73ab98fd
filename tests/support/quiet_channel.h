// SPDX-License-Identifier: Apache-2.0
// A channel for a rank body that trains by itself: it makes no requests, and keeps what is sent.
#pragma once

#include <string>
#include <vector>

#include "accrue/train/rank_channel.h"

namespace accrue::test {

class QuietChannel final : public RankChannel {
 public:
  void send(EventBody body) override { sent_.push_back(std::move(body)); }
  void progress(const char*, std::int64_t, std::int64_t) override {}
  Gate before_micro_step(std::int64_t, const std::function<void()>&) override { return {}; }
  BoundaryRequests boundary_requests() override { return {}; }
  void hold_here() override {}
  void close() override {}

  /// All warnings, a line each.
  std::string warnings() const {
    std::string all;
    for (const EventBody& body : sent_)
      if (const auto* warning = std::get_if<Warning>(&body)) all += warning->message + "\n";
    return all;
  }

 private:
  std::vector<EventBody> sent_;
};

}  // namespace accrue::test
