// SPDX-License-Identifier: Apache-2.0
// One axis' group of ranks and the collectives they call together. Every call is counted (calls and payload bytes), so
// tests and the sync strip read the same numbers. Collectives are blocking and must be called in the same order by all
// ranks of the axis. Errors: a lost peer or a time-out throws CommError (caught at the rank's one seam); nothing in
// memory is to be trusted afterwards. Thread: the training thread; one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "accrue/run/rank_grid.h"

namespace accrue {

struct CommError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Reduce { sum, max };

struct CollectiveRecord {
  std::string axis;           ///< "data", ...
  std::string op;             ///< "all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier"
  std::int64_t bytes = 0;     ///< payload of this rank
  std::int64_t begin_ns = 0;  ///< CLOCK_MONOTONIC
  std::int64_t end_ns = 0;
  bool gradients = false;  ///< part of the gradient reduction (counted apart from the small control reductions)
};

struct TrafficCounters {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< payload
  std::int64_t gradient_calls = 0;
  std::int64_t gradient_bytes = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::int64_t rank() const = 0;  ///< in the group
  virtual std::int64_t size() const = 0;
  virtual Axis axis() const = 0;
  virtual std::string backend() const = 0;  ///< "shm", "gloo", "nccl", "single"

  /// In place, on contiguous tensors of equal shape and dtype on all ranks. Sums are taken in rank order by the shm
  /// backend.
  void all_reduce(at::Tensor& tensor, Reduce op = Reduce::sum);
  /// The same, counted as gradient traffic.
  void all_reduce_gradients(at::Tensor& flat);
  void broadcast(at::Tensor& tensor, std::int64_t root = 0);
  /// out: [size, *in.shape] contiguous.
  void all_gather(at::Tensor& out, const at::Tensor& in);
  void barrier();

  /// Memory in which gradients may live so that a reduction needs no copy (the shm mapping); an ordinary tensor
  /// elsewhere. Shapes: returns [numel], zeroed. Collective: the whole axis, in the same order.
  virtual at::Tensor shared_buffer(std::int64_t numel, at::ScalarType dtype);

  /// While it lives, the calls of this communicator on this rank wait for as long as their peers live: for work of
  /// unknown length between two collectives, such as rank 0 writing a file. A peer that ends or leaves still ends the
  /// call at once. Scopes nest; the scope must not outlive the communicator. Open it on every rank that waits.
  class UntimedScope {
   public:
    explicit UntimedScope(Communicator& owner) : owner_(owner) { owner_.add_untimed(1); }
    ~UntimedScope() { owner_.add_untimed(-1); }
    UntimedScope(const UntimedScope&) = delete;
    UntimedScope& operator=(const UntimedScope&) = delete;

   private:
    Communicator& owner_;
  };
  [[nodiscard]] UntimedScope untimed() { return UntimedScope(*this); }

  const TrafficCounters& traffic() const { return traffic_; }
  /// Called after each collective with its record (sync events); may be empty.
  void set_observer(std::function<void(const CollectiveRecord&)> observer) { observer_ = std::move(observer); }
  /// Called before each collective begins (heartbeat's phase and sequence number); may be empty.
  void set_begin_observer(std::function<void()> observer) { begin_observer_ = std::move(observer); }

 protected:
  virtual void do_all_reduce(at::Tensor& tensor, Reduce op) = 0;
  virtual void do_broadcast(at::Tensor& tensor, std::int64_t root) = 0;
  virtual void do_all_gather(at::Tensor& out, const at::Tensor& in) = 0;
  virtual void do_barrier() = 0;
  /// True: from here on calls wait without a deadline; false: the group's time-out holds again.
  virtual void do_set_untimed(bool /*untimed*/) {}

 private:
  void add_untimed(int scopes);

  template <typename F>
  void counted(const char* op, std::int64_t bytes, bool gradients, F&& call);

  int untimed_scopes_ = 0;
  TrafficCounters traffic_;
  std::function<void(const CollectiveRecord&)> observer_;
  std::function<void()> begin_observer_;
};

}  // namespace accrue
