// SPDX-License-Identifier: Apache-2.0
// Two broadcasts: the length, then the bytes. An error is sent as its code and text, so that no rank waits for a plan
// that will not come.
#include "rank/plan_exchange.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <string>

namespace accrue {

Result<RunOrder> share_order(Communicator& axis, const Result<RunOrder>& made) {
  std::string text;
  at::Tensor head = at::empty({2}, at::kLong);
  auto* numbers = head.mutable_data_ptr<std::int64_t>();
  if (axis.rank() == 0) text = made ? to_json(*made) : made.error().text();
  numbers[0] = static_cast<std::int64_t>(made ? ErrorCode::unset : made.error().code);
  numbers[1] = static_cast<std::int64_t>(text.size());
  axis.broadcast(head, 0);

  at::Tensor bytes = at::empty({numbers[1]}, at::kByte);
  if (axis.rank() == 0) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  axis.broadcast(bytes, 0);
  text.assign(static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(numbers[1]));
  const auto code = static_cast<ErrorCode>(numbers[0]);
  if (code != ErrorCode::unset) return fail(code, text);
  return run_order_from_json(text);
}

}  // namespace accrue
