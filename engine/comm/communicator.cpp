// SPDX-License-Identifier: Apache-2.0
// Common front of every call: checks arguments, counts and times calls; a group of one costs nothing. Backends only
// implement what follows, so the counters mean the same for all of them.
#include "accrue/comm/communicator.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "accrue/run/base/monotonic_clock.h"

namespace accrue {
namespace {

void check(const at::Tensor& tensor, const char* op) {
  if (!tensor.defined()) throw std::invalid_argument(std::string(op) + ": the tensor is undefined");
  if (!tensor.is_contiguous()) {
    throw std::invalid_argument(std::string(op) + ": the tensor is not contiguous; pass tensor.contiguous()");
  }
}

/// Whether `whole` is `ranks` tensors like `piece`, joined along the first dimension.
bool is_joined(const at::Tensor& whole, const at::Tensor& piece, std::int64_t ranks) {
  return whole.scalar_type() == piece.scalar_type() && whole.dim() == piece.dim() && piece.dim() > 0 &&
         whole.size(0) == ranks * piece.size(0) && whole.sizes().slice(1) == piece.sizes().slice(1);
}

bool stacked(const at::Tensor& whole, const at::Tensor& piece, std::int64_t ranks) {
  return whole.scalar_type() == piece.scalar_type() && whole.dim() == piece.dim() + 1 && whole.size(0) == ranks &&
         whole.sizes().slice(1) == piece.sizes();
}

CollectivePurpose purpose_of(const MessageLabel& label) {
  if (label.what == MessageLabel::What::tensor) return Communicator::unsaid;
  return label.what == MessageLabel::What::parameter ? CollectivePurpose::parameters : CollectivePurpose::activations;
}

class SingleCommunicator final : public Communicator {
 public:
  explicit SingleCommunicator(std::string axis) : axis_(std::move(axis)) {}
  std::int64_t rank() const override { return 0; }
  std::int64_t size() const override { return 1; }
  std::string axis() const override { return axis_; }
  std::string backend() const override { return "single"; }

 protected:
  using Call = std::unique_ptr<PendingCall>;
  Call do_all_reduce(at::Tensor, Reduce, Waits) override { return {}; }
  Call do_reduce_scatter(at::Tensor out, at::Tensor in, Waits) override { return copied(out, in); }
  Call do_all_gather(at::Tensor out, at::Tensor in, Waits) override { return copied(out, in); }
  Call do_broadcast(at::Tensor, std::int64_t) override { return {}; }
  Call do_send(at::Tensor, std::int64_t, MessageLabel) override { return {}; }
  Call do_receive(at::Tensor, std::int64_t, MessageLabel) override { return {}; }
  Call do_barrier() override { return {}; }

 private:
  static Call copied(at::Tensor& out, const at::Tensor& in) {
    out.copy_(in.view(out.sizes()));
    return {};
  }
  std::string axis_;
};

}  // namespace

std::string MessageLabel::text() const {
  switch (what) {
    case What::tensor:
      return "a tensor";
    case What::input:
      return "the input of part " + std::to_string(part) + ", micro-step " + std::to_string(micro_step);
    case What::gradient:
      return "the gradient of part " + std::to_string(part) + "'s output, micro-step " + std::to_string(micro_step);
    case What::parameter:
      return "a parameter";
  }
  return "something else";
}

void Work::wait() {
  const std::unique_ptr<Begun> begun = std::move(begun_);
  if (!begun) return;
  if (begun->call) {
    begun->owner->waits_in(&begun->record);
    begun->record.end_ns = begun->call->wait();
    begun->owner->waits_in(nullptr);
  } else {
    begun->record.end_ns = monotonic_ns();
  }
  begun->owner->count(begun->record);
}

template <typename F>
Work Communicator::begin(const char* op, const at::Tensor* payload, CollectivePurpose purpose, F&& call,
                         MessageLabel::What message) {
  Work work;
  if (size() == 1) {
    call();
    return work;
  }
  if (begin_observer_) begin_observer_();
  const std::int64_t bytes = payload != nullptr ? static_cast<std::int64_t>(payload->nbytes()) : 0;
  work.begun_ = std::make_unique<Work::Begun>();
  work.begun_->owner = this;
  work.begun_->record = {axis(), op, bytes, monotonic_ns(), 0, purpose, message};
  waits_in(&work.begun_->record);
  work.begun_->call = call();
  waits_in(nullptr);
  return work;
}

void Communicator::count(const CollectiveRecord& record) {
  ++traffic_.calls;
  traffic_.bytes += record.bytes;
  OpTraffic& of_op = traffic_.by_op[record.op];
  ++of_op.calls;
  of_op.bytes += record.bytes;
  if (record.purpose == CollectivePurpose::gradients) {
    ++traffic_.gradient_calls;
    traffic_.gradient_bytes += record.bytes;
  }
  if (observer_) observer_(record);
}

Work Communicator::start_all_reduce(at::Tensor& tensor, Reduce op, Waits waits, CollectivePurpose purpose) {
  check(tensor, "all_reduce");
  return begin("all_reduce", &tensor, purpose, [&] { return do_all_reduce(tensor, op, waits); });
}

Work Communicator::start_reduce_scatter(at::Tensor& out, const at::Tensor& in, Waits waits, CollectivePurpose purpose) {
  check(out, "reduce_scatter");
  check(in, "reduce_scatter");
  if (!is_joined(in, out, size())) {
    throw std::invalid_argument("reduce_scatter: in must be [size * D, ...] of out's dtype, where out is [D, ...]");
  }
  return begin("reduce_scatter", &in, purpose, [&] { return do_reduce_scatter(out, in, waits); });
}

Work Communicator::start_all_gather(at::Tensor& out, const at::Tensor& in, Waits waits, CollectivePurpose purpose) {
  check(in, "all_gather");
  check(out, "all_gather");
  if (!stacked(out, in, size()) && !is_joined(out, in, size())) {
    throw std::invalid_argument(
        "all_gather: out must be [size, *in.shape] or, where in is [D, ...], [size * D, ...] of in's dtype");
  }
  return begin("all_gather", &in, purpose, [&] { return do_all_gather(out, in, waits); });
}

void Communicator::broadcast(at::Tensor& tensor, std::int64_t root, CollectivePurpose purpose) {
  check(tensor, "broadcast");
  if (root < 0 || root >= size()) {
    throw std::invalid_argument("broadcast: root " + std::to_string(root) + " is outside a group of " +
                                std::to_string(size()));
  }
  begin("broadcast", &tensor, purpose, [&] { return do_broadcast(tensor, root); }).wait();
}

void Communicator::check_peer(const char* op, std::int64_t peer) const {
  if (peer >= 0 && peer < size() && peer != rank()) return;
  throw std::invalid_argument(std::string(op) + ": rank " + std::to_string(peer) +
                              " is not another rank of a group of " + std::to_string(size()) +
                              ", in which this is rank " + std::to_string(rank()));
}

Work Communicator::start_send(const at::Tensor& tensor, std::int64_t to, MessageLabel label) {
  check(tensor, "send");
  check_peer("send", to);
  return begin(
      "send", &tensor, purpose_of(label), [&] { return do_send(tensor, to, label); }, label.what);
}

Work Communicator::start_receive(at::Tensor& tensor, std::int64_t from, MessageLabel label) {
  check(tensor, "receive");
  check_peer("receive", from);
  return begin(
      "receive", &tensor, purpose_of(label), [&] { return do_receive(tensor, from, label); }, label.what);
}

void Communicator::barrier() {
  begin("barrier", nullptr, unsaid, [&] { return do_barrier(); }).wait();
}

void Communicator::add_untimed(int scopes) {
  untimed_scopes_ += scopes;
  do_set_untimed(untimed_scopes_ > 0);
}

at::Tensor Communicator::shared_buffer(std::int64_t numel, at::ScalarType dtype) {
  return at::zeros({numel}, dtype);
}

std::unique_ptr<Communicator> single_communicator(std::string axis) {
  return std::make_unique<SingleCommunicator>(std::move(axis));
}

}  // namespace accrue
