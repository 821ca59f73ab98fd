// SPDX-License-Identifier: Apache-2.0
// Two broadcasts: the length, then the bytes. An error is sent as its code and text, so that no rank waits for a
// missing plan.
#include "rank/plan_exchange.h"

#include <ATen/ops/empty.h>

#include <cstdlib>
#include <cstring>

#include "accrue/run/base/monotonic_clock.h"

namespace accrue {

std::int64_t origin_here(Communicator& axis, std::int64_t origin_ns) {
  constexpr std::int64_t same_clock_ns = 1'000'000'000;
  axis.barrier();
  const std::int64_t here = monotonic_ns();
  at::Tensor first = at::empty({1}, at::kLong);
  auto* number = first.mutable_data_ptr<std::int64_t>();
  *number = here;
  axis.broadcast(first, 0);
  const std::int64_t apart = here - *number;
  return std::llabs(apart) < same_clock_ns ? origin_ns : origin_ns + apart;
}

Result<std::string> share_text(Communicator& axis, const Result<std::string>& made) {
  std::string text;
  at::Tensor head = at::empty({2}, at::kLong);
  auto* numbers = head.mutable_data_ptr<std::int64_t>();
  if (axis.rank() == 0) text = made ? *made : made.error().text();
  numbers[0] = static_cast<std::int64_t>(made ? ErrorCode::unset : made.error().code);
  numbers[1] = static_cast<std::int64_t>(text.size());
  axis.broadcast(head, 0);

  at::Tensor bytes = at::empty({numbers[1]}, at::kByte);
  if (axis.rank() == 0) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  axis.broadcast(bytes, 0);
  text.assign(static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(numbers[1]));
  const auto code = static_cast<ErrorCode>(numbers[0]);
  if (code != ErrorCode::unset) return fail(code, text);
  return text;
}

Result<RunOrder> share_order(Communicator& axis, const Result<RunOrder>& made) {
  const auto text = share_text(axis, made.map([](const RunOrder& order) { return to_json(order); }));
  if (!text) return tl::unexpected(text.error());
  auto order = run_order_from_json(*text);
  if (order) order->origin_ns = origin_here(axis, order->origin_ns);
  return order;
}

}  // namespace accrue
