// SPDX-License-Identifier: Apache-2.0
// The door of every collective: arguments are checked, calls are counted and timed, a group of one costs nothing. What
// the backends do behind it is their own affair, so the counters mean the same for all of them.
#include "accrue/comm/communicator.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "accrue/run/monotonic_clock.h"

namespace accrue {
namespace {

std::int64_t payload(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

void check(const at::Tensor& tensor, const char* op) {
  if (!tensor.defined()) throw std::invalid_argument(std::string(op) + ": the tensor is undefined");
  if (!tensor.is_contiguous()) {
    throw std::invalid_argument(std::string(op) + ": the tensor is not contiguous; pass tensor.contiguous()");
  }
}

class SingleCommunicator final : public Communicator {
 public:
  explicit SingleCommunicator(Axis axis) : axis_(axis) {}
  std::int64_t rank() const override { return 0; }
  std::int64_t size() const override { return 1; }
  Axis axis() const override { return axis_; }
  std::string backend() const override { return "single"; }

 protected:
  void do_all_reduce(at::Tensor&, Reduce) override {}
  void do_broadcast(at::Tensor&, std::int64_t) override {}
  void do_all_gather(at::Tensor& out, const at::Tensor& in) override { out.copy_(in.unsqueeze(0)); }
  void do_barrier() override {}

 private:
  Axis axis_;
};

}  // namespace

template <typename F>
void Communicator::counted(const char* op, std::int64_t bytes, bool gradients, F&& call) {
  if (size() == 1) {
    call();
    return;
  }
  if (begin_observer_) begin_observer_();
  CollectiveRecord record{std::string(to_string(axis())), op, bytes, monotonic_ns(), 0, gradients};
  call();
  record.end_ns = monotonic_ns();
  ++traffic_.calls;
  traffic_.bytes += bytes;
  if (gradients) {
    ++traffic_.gradient_calls;
    traffic_.gradient_bytes += bytes;
  }
  if (observer_) observer_(record);
}

void Communicator::all_reduce(at::Tensor& tensor, Reduce op) {
  check(tensor, "all_reduce");
  counted("all_reduce", payload(tensor), false, [&] { do_all_reduce(tensor, op); });
}

void Communicator::all_reduce_gradients(at::Tensor& flat) {
  check(flat, "all_reduce");
  counted("all_reduce", payload(flat), true, [&] { do_all_reduce(flat, Reduce::sum); });
}

void Communicator::broadcast(at::Tensor& tensor, std::int64_t root) {
  check(tensor, "broadcast");
  if (root < 0 || root >= size()) {
    throw std::invalid_argument("broadcast: root " + std::to_string(root) + " is outside a group of " +
                                std::to_string(size()));
  }
  counted("broadcast", payload(tensor), false, [&] { do_broadcast(tensor, root); });
}

void Communicator::all_gather(at::Tensor& out, const at::Tensor& in) {
  check(in, "all_gather");
  check(out, "all_gather");
  if (out.dim() != in.dim() + 1 || out.size(0) != size() || out.numel() != size() * in.numel() ||
      out.scalar_type() != in.scalar_type()) {
    throw std::invalid_argument("all_gather: out must be [size, *in.shape] of in's dtype");
  }
  counted("all_gather", payload(in), false, [&] { do_all_gather(out, in); });
}

void Communicator::barrier() {
  counted("barrier", 0, false, [&] { do_barrier(); });
}

void Communicator::add_untimed(int scopes) {
  untimed_scopes_ += scopes;
  do_set_untimed(untimed_scopes_ > 0);
}

at::Tensor Communicator::shared_buffer(std::int64_t numel, at::ScalarType dtype) {
  return at::zeros({numel}, dtype);
}

std::unique_ptr<Communicator> single_communicator(Axis axis) {
  return std::make_unique<SingleCommunicator>(axis);
}

}  // namespace accrue
