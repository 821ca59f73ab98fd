// SPDX-License-Identifier: Apache-2.0
// Collectives of ranks on one host through memory that they all map. Loopback sockets move every byte twice through the
// kernel. Here each rank sums its 1/N of the elements over all ranks' data, in rank order, and writes the result to
// all. So an all-reduce of gradients in a shared_buffer() costs one pass over memory and no copy. The sums depend on
// neither timing nor the number of threads, so two runs are bit-identical.
//
// Ordinary tensors pass through a staging area of two halves per rank. Half h of chunk c is overwritten in chunk c + 2
// at the earliest. A rank gets there only through the barrier of chunk c + 1, at which every reader of chunk c has
// arrived. So one barrier per chunk suffices if ranks only read each other's staging.
//
// A collective that is waited for at once runs in the caller's thread, a started one in a thread that takes them in
// order; a call during the work of that thread waits for its turn there.
#include "shm_backend.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "call_queue.h"
#include "shared_segment.h"
#include "shm_control.h"
#include "shm_mail.h"
#include "shm_sum.h"

namespace accrue {
namespace {

constexpr std::size_t kHalfBytes = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;
constexpr std::int64_t kLineElements = 64;     // slices begin at cache lines for any dtype
constexpr std::int64_t kSmallBytes = 1 << 15;  // below this every rank sums for itself: one barrier instead of two

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// One shared_buffer(): a row of `stride` bytes per rank.
struct SharedRows {
  std::weak_ptr<SharedSegment> segment;  // owned by the tensors
  std::size_t stride = 0;
};

struct Residence {
  std::shared_ptr<SharedSegment> segment;
  std::size_t stride = 0;
  std::size_t offset = 0;   ///< within a row
  std::int64_t place = -1;  ///< equal on all ranks
};

class ShmCommunicator final : public Communicator {
 public:
  ShmCommunicator(const CommGroup& group, std::shared_ptr<SharedSegment> segment)
      : group_(group),
        segment_(std::move(segment)),
        control_(group, segment_->data()),
        staging_(segment_->data() + control_bytes(group.size())),
        mail_(group, control_, staging_ + staging_bytes(group.size())) {}
  ~ShmCommunicator() override { control_.abandon(); }

  static std::size_t bytes_for(std::int64_t ranks) {
    return control_bytes(ranks) + staging_bytes(ranks) + ShmMail::bytes_for(ranks);
  }

  std::int64_t rank() const override { return group_.rank; }
  std::int64_t size() const override { return group_.size(); }
  std::string axis() const override { return group_.axis; }
  std::string backend() const override { return "shm"; }

  at::Tensor shared_buffer(std::int64_t numel, at::ScalarType dtype) override;

 protected:
  using Call = std::unique_ptr<PendingCall>;
  Call do_all_reduce(at::Tensor tensor, Reduce op, Waits waits) override;
  Call do_reduce_scatter(at::Tensor out, at::Tensor in, Waits waits) override;
  Call do_all_gather(at::Tensor out, at::Tensor in, Waits waits) override;
  Call do_broadcast(at::Tensor tensor, std::int64_t root) override;
  Call do_send(at::Tensor tensor, std::int64_t to, MessageLabel label) override;
  Call do_receive(at::Tensor tensor, std::int64_t from, MessageLabel label) override;
  Call do_barrier() override {
    return in_order(Waits::now, [this] { control_.begin({.op = ShmOp::barrier}); });
  }
  void do_set_untimed(bool untimed) override { control_.set_untimed(untimed); }

 private:
  std::size_t ranks() const { return group_.members.size(); }
  std::size_t mine() const { return static_cast<std::size_t>(group_.rank); }
  std::byte* half(std::size_t member) const {
    return staging_ + member * 2 * kHalfBytes + static_cast<std::size_t>(chunks_ % 2) * kHalfBytes;
  }
  static std::size_t control_bytes(std::int64_t ranks) { return round_up(ShmControl::bytes_for(ranks), kPage); }
  static std::size_t staging_bytes(std::int64_t ranks) { return static_cast<std::size_t>(ranks) * 2 * kHalfBytes; }

  Call in_order(Waits waits, std::function<void()> call) {
    if (waits == Waits::later || !started_.idle()) return started_.put(std::move(call));
    call();
    return {};
  }
  void all_reduce_now(at::Tensor& tensor, Reduce op);
  void reduce_scatter_now(at::Tensor& out, const at::Tensor& in);
  void all_gather_now(at::Tensor& out, const at::Tensor& in);
  void broadcast_now(at::Tensor& tensor, std::int64_t root);
  std::vector<std::byte*> rows_of(const Residence& home) const;
  Residence residence_of(const at::Tensor& tensor) const;
  Result<std::shared_ptr<SharedSegment>> agree_on_segment(std::size_t bytes);
  void reduce_small(std::byte* data, std::int64_t numel, at::ScalarType dtype, Reduce op);
  void reduce_rows(const std::vector<std::byte*>& rows, std::int64_t numel, at::ScalarType dtype, Reduce op);
  void reduce_staged(std::byte* data, std::int64_t numel, at::ScalarType dtype, Reduce op);

  CommGroup group_;
  std::shared_ptr<SharedSegment> segment_;
  ShmControl control_;
  std::byte* staging_;
  std::uint64_t chunks_ = 0;  ///< staging chunks used so far, equal on all ranks
  std::vector<SharedRows> shared_;
  ShmMail mail_;
  CallQueue started_;  // last: its thread uses everything above
};

/// Offer of the first member if it could not make a segment: the code and the text of its error.
std::string refusal(const Error& error) {
  return "!" + std::to_string(static_cast<int>(error.code)) + ":" + error.text();
}
tl::unexpected<Error> refused(const std::string& offer) {
  return fail(static_cast<ErrorCode>(std::atoi(offer.c_str() + 1)), offer.substr(offer.find(':') + 1));
}

void require_cpu(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) throw std::invalid_argument("backend shm moves CPU tensors only; use backend nccl on a GPU");
}

void require_sum(const char* op, const at::Tensor& tensor) {
  require_cpu(tensor);
  if (can_reduce(tensor.scalar_type())) return;
  throw std::invalid_argument(std::string(op) + ": backend shm has no sum for " + c10::toString(tensor.scalar_type()));
}

Residence ShmCommunicator::residence_of(const at::Tensor& tensor) const {
  const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
  std::int64_t base = 0;
  for (const SharedRows& rows : shared_) {
    if (auto segment = rows.segment.lock()) {
      const std::byte* row = segment->data() + mine() * rows.stride;
      if (data >= row && data + tensor.nbytes() <= row + rows.stride) {
        const auto offset = static_cast<std::size_t>(data - row);
        return {std::move(segment), rows.stride, offset, base + static_cast<std::int64_t>(offset)};
      }
    }
    base += static_cast<std::int64_t>(rows.stride);
  }
  return {};
}

std::vector<std::byte*> ShmCommunicator::rows_of(const Residence& home) const {
  std::vector<std::byte*> rows;
  for (std::size_t r = 0; r < ranks(); ++r) rows.push_back(home.segment->data() + r * home.stride + home.offset);
  return rows;
}

ShmCommunicator::Call ShmCommunicator::do_all_reduce(at::Tensor tensor, Reduce op, Waits waits) {
  require_sum("all_reduce", tensor);
  return in_order(waits, [this, tensor, op]() mutable { all_reduce_now(tensor, op); });
}

void ShmCommunicator::all_reduce_now(at::Tensor& tensor, Reduce op) {
  const at::ScalarType dtype = tensor.scalar_type();
  const std::int64_t numel = tensor.numel();
  auto* data = static_cast<std::byte*>(tensor.mutable_data_ptr());
  const bool small = static_cast<std::int64_t>(tensor.nbytes()) <= kSmallBytes;
  const Residence home = small ? Residence{} : residence_of(tensor);
  if (small && numel > 0) std::memcpy(half(mine()), data, tensor.nbytes());  // an empty tensor has no address
  control_.begin({.op = ShmOp::all_reduce,
                  .dtype = static_cast<std::int32_t>(dtype),
                  .numel = numel,
                  .detail = static_cast<std::int64_t>(op),
                  .place = home.place});
  if (small) {
    reduce_small(data, numel, dtype, op);
  } else if (home.segment) {
    reduce_rows(rows_of(home), numel, dtype, op);
    control_.barrier();
  } else {
    reduce_staged(data, numel, dtype, op);
  }
}

/// After the barrier of begin() all operands are in the staging halves.
void ShmCommunicator::reduce_small(std::byte* data, std::int64_t numel, at::ScalarType dtype, Reduce op) {
  std::vector<const std::byte*> sources;
  for (std::size_t r = 0; r < ranks(); ++r) sources.push_back(half(r));
  std::byte* const destination[] = {data};
  reduce_elements(dtype, op, sources, destination, 0, numel);
  ++chunks_;
}

/// Sums this rank's slice of the rows, between the caller's barriers.
void ShmCommunicator::reduce_rows(const std::vector<std::byte*>& rows, std::int64_t numel, at::ScalarType dtype,
                                  Reduce op) {
  const std::int64_t lines = (numel + kLineElements - 1) / kLineElements;
  const auto boundary = [&](std::int64_t r) { return std::min(numel, lines * r / group_.size() * kLineElements); };
  const std::int64_t begin = boundary(group_.rank);
  const std::int64_t end = boundary(group_.rank + 1);
  const std::vector<const std::byte*> sources(rows.begin(), rows.end());
  reduce_elements(dtype, op, sources, rows, begin, end - begin);
}

void ShmCommunicator::reduce_staged(std::byte* data, std::int64_t numel, at::ScalarType dtype, Reduce op) {
  const auto element = static_cast<std::int64_t>(c10::elementSize(dtype));
  const std::int64_t per_chunk = static_cast<std::int64_t>(kHalfBytes) / element;
  for (std::int64_t at = 0; at < numel; at += per_chunk, ++chunks_) {
    const std::int64_t n = std::min(per_chunk, numel - at);
    const auto bytes = static_cast<std::size_t>(n * element);
    std::memcpy(half(mine()), data + at * element, bytes);
    control_.barrier();
    std::vector<std::byte*> rows;
    for (std::size_t r = 0; r < ranks(); ++r) rows.push_back(half(r));
    reduce_rows(rows, n, dtype, op);
    control_.barrier();
    std::memcpy(data + at * element, half(mine()), bytes);
  }
}

/// Each rank stages a slice for every rank and sums its own slices.
ShmCommunicator::Call ShmCommunicator::do_reduce_scatter(at::Tensor out, at::Tensor in, Waits waits) {
  require_sum("reduce_scatter", in);
  require_cpu(out);
  return in_order(waits, [this, out, in]() mutable { reduce_scatter_now(out, in); });
}

void ShmCommunicator::reduce_scatter_now(at::Tensor& out, const at::Tensor& in) {
  const at::ScalarType dtype = in.scalar_type();
  const auto element = static_cast<std::int64_t>(in.element_size());
  const std::int64_t numel = out.numel();
  const Residence home = residence_of(in);
  control_.begin({.op = ShmOp::reduce_scatter,
                  .dtype = static_cast<std::int32_t>(dtype),
                  .numel = in.numel(),
                  .place = home.place});
  std::byte* const result[] = {static_cast<std::byte*>(out.mutable_data_ptr())};
  if (home.segment) {
    std::vector<const std::byte*> sources;
    for (const std::byte* row : rows_of(home)) sources.push_back(row + group_.rank * numel * element);
    reduce_elements(dtype, Reduce::sum, sources, result, 0, numel);
    control_.barrier();
    return;
  }
  const auto* data = static_cast<const std::byte*>(in.const_data_ptr());
  const std::int64_t per_chunk = static_cast<std::int64_t>(kHalfBytes) / element / size();
  for (std::int64_t at = 0; at < numel; at += per_chunk, ++chunks_) {
    const std::int64_t n = std::min(per_chunk, numel - at);
    const auto bytes = static_cast<std::size_t>(n * element);
    for (std::int64_t r = 0; r < size(); ++r)
      std::memcpy(half(mine()) + static_cast<std::size_t>(r) * bytes, data + (r * numel + at) * element, bytes);
    control_.barrier();
    std::vector<const std::byte*> sources;
    for (std::size_t r = 0; r < ranks(); ++r) sources.push_back(half(r) + mine() * bytes);
    std::byte* const piece[] = {result[0] + at * element};
    reduce_elements(dtype, Reduce::sum, sources, piece, 0, n);
  }
}

ShmCommunicator::Call ShmCommunicator::do_broadcast(at::Tensor tensor, std::int64_t root) {
  require_cpu(tensor);
  return in_order(Waits::now, [this, tensor, root]() mutable { broadcast_now(tensor, root); });
}

void ShmCommunicator::broadcast_now(at::Tensor& tensor, std::int64_t root) {
  control_.begin({.op = ShmOp::broadcast,
                  .dtype = static_cast<std::int32_t>(tensor.scalar_type()),
                  .numel = tensor.numel(),
                  .detail = root});
  auto* data = static_cast<std::byte*>(tensor.mutable_data_ptr());
  for (std::size_t at = 0; at < tensor.nbytes(); at += kHalfBytes, ++chunks_) {
    const std::size_t n = std::min(kHalfBytes, tensor.nbytes() - at);
    std::byte* staged = half(static_cast<std::size_t>(root));
    if (group_.rank == root) std::memcpy(staged, data + at, n);
    control_.barrier();
    if (group_.rank != root) std::memcpy(data + at, staged, n);
  }
}

ShmCommunicator::Call ShmCommunicator::do_all_gather(at::Tensor out, at::Tensor in, Waits waits) {
  require_cpu(in);
  require_cpu(out);
  return in_order(waits, [this, out, in]() mutable { all_gather_now(out, in); });
}

void ShmCommunicator::all_gather_now(at::Tensor& out, const at::Tensor& in) {
  control_.begin({.op = ShmOp::all_gather, .dtype = static_cast<std::int32_t>(in.scalar_type()), .numel = in.numel()});
  const auto* data = static_cast<const std::byte*>(in.const_data_ptr());
  auto* gathered = static_cast<std::byte*>(out.mutable_data_ptr());
  for (std::size_t at = 0; at < in.nbytes(); at += kHalfBytes, ++chunks_) {
    const std::size_t n = std::min(kHalfBytes, in.nbytes() - at);
    std::memcpy(half(mine()), data + at, n);
    control_.barrier();
    for (std::size_t r = 0; r < ranks(); ++r) std::memcpy(gathered + r * in.nbytes() + at, half(r), n);
  }
}

ShmCommunicator::Call ShmCommunicator::do_send(at::Tensor tensor, std::int64_t to, MessageLabel label) {
  require_cpu(tensor);
  return mail_.send(std::move(tensor), static_cast<std::size_t>(to), label);
}

ShmCommunicator::Call ShmCommunicator::do_receive(at::Tensor tensor, std::int64_t from, MessageLabel label) {
  require_cpu(tensor);
  return mail_.receive(std::move(tensor), static_cast<std::size_t>(from), label);
}

/// The first member makes a segment and the others map it; all succeed or all report the first failure.
Result<std::shared_ptr<SharedSegment>> ShmCommunicator::agree_on_segment(std::size_t bytes) {
  Result<std::shared_ptr<SharedSegment>> segment = fail(ErrorCode::unset, "");
  if (group_.rank == 0) {
    segment = SharedSegment::create(bytes);
    control_.offer(segment ? std::to_string((*segment)->descriptor()) : refusal(segment.error()));
  }
  control_.barrier();
  const std::string made = control_.offered(0);
  if (made.starts_with('!')) return refused(made);
  if (group_.rank != 0) segment = SharedSegment::open(group_.members[0].pid, std::atoi(made.c_str()), bytes);
  control_.barrier();  // all have read the first member's offer
  control_.offer(segment ? "" : "!" + segment.error().text());
  control_.barrier();
  for (std::size_t member = 0; member < ranks(); ++member) {
    const std::string said = control_.offered(member);
    if (said.starts_with('!')) segment = fail(ErrorCode::device, group_.name_of(member) + ": " + said.substr(1));
  }
  control_.barrier();  // all have read the answers, before another offer
  if (segment) (*segment)->close_descriptor();
  return segment;
}

at::Tensor ShmCommunicator::shared_buffer(std::int64_t numel, at::ScalarType dtype) {
  if (!started_.idle()) throw std::logic_error("shared_buffer: a call that was started has not been waited for");
  control_.begin({.op = ShmOp::shared_buffer, .dtype = static_cast<std::int32_t>(dtype), .numel = numel});
  const std::size_t stride =
      round_up(std::max<std::size_t>(static_cast<std::size_t>(numel) * c10::elementSize(dtype), 1), kPage);
  auto segment = agree_on_segment(stride * ranks());
  if (!segment) throw CommError(segment.error().text());
  shared_.push_back({*segment, stride});
  std::byte* row = (*segment)->data() + mine() * stride;
  auto keep = [held = *segment](void*) mutable { held.reset(); };
  return at::from_blob(row, {numel}, std::move(keep), at::TensorOptions(dtype));
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_shm_communicator(const CommGroup& group, Exchange& exchange) {
  const std::size_t bytes = ShmCommunicator::bytes_for(group.size());
  const auto missing = [&](std::size_t member) {
    return fail(ErrorCode::rendezvous,
                group.name_of(member) + " did not come to build the " + group.axis + " axis within " +
                    std::to_string(group.join_timeout.count()) + " ms",
                "backend shm", "See the log of that rank");
  };
  Result<std::shared_ptr<SharedSegment>> segment = fail(ErrorCode::unset, "");
  if (group.rank == 0) {
    segment = SharedSegment::create(bytes);
    exchange.publish("segment", segment ? std::to_string((*segment)->descriptor()) : refusal(segment.error()));
    if (!segment) return tl::unexpected(segment.error());  // the others have read this too, and map nothing
  } else {
    const auto made = exchange.fetch("segment", group.join_timeout);
    if (!made) return missing(0);
    if (made->starts_with('!')) return refused(*made);
    segment = SharedSegment::open(group.members[0].pid, std::atoi(made->c_str()), bytes);
  }
  exchange.publish("mapped/" + std::to_string(group.rank), segment ? "ok" : "!" + segment.error().text());
  for (std::size_t member = 0; member < group.members.size(); ++member) {
    const auto said = exchange.fetch("mapped/" + std::to_string(member), group.join_timeout);
    if (!said) return missing(member);
    if (said->starts_with('!') && segment)
      segment = fail(ErrorCode::device, group.name_of(member) + ": " + said->substr(1));
  }
  if (!segment) return tl::unexpected(segment.error());
  (*segment)->close_descriptor();
  return std::make_unique<ShmCommunicator>(group, std::move(*segment));
}

}  // namespace accrue
