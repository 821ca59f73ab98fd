// SPDX-License-Identifier: Apache-2.0
// Collectives over sockets, for ranks on several hosts: LibTorch's ProcessGroupGloo, called directly instead of through
// the dispatcher. LibTorch contains Gloo but not its headers; Debian's older ones declare enough to construct the
// process group. They are included only here, this file has hidden visibility and no Gloo symbol leaves the library, so
// the two versions cannot meet.
//
// Gloo's own time-outs are disabled after connecting: they use a clock that advances while the process is frozen. The
// caller waits for the end of an operation itself, with its own patience (patience.h).
//
// On one host the device listens only on 127.0.0.1, unless the user names an interface. Gloo reports that a connection
// broke, not whose: for peers on this host, pidfds show which one died. After a failure the process group is abandoned
// instead of destroyed, because its destructor waits for operations that can no longer end.
//
// A rank that waits for long compares the ranks' published calls and waits. So another collective, another size,
// another root, and ranks that wait for each other's messages are reported by name instead of by time-out.
#include "gloo_backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <signal.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "accrue/run/base/monotonic_clock.h"
#include "error_text.h"
#include "gloo_thread.h"
#include "local_address.h"
#include "patience.h"
#include "peer_watch.h"
#include "rank_store.h"

namespace accrue {
namespace {

constexpr std::chrono::milliseconds kNameTheDead{
    300};  // a broken connection may be visible before its process has ended
constexpr std::chrono::milliseconds kLook{5};
constexpr std::chrono::milliseconds kCompareAfter{200};  // a longer wait may be due to a different call
constexpr std::chrono::milliseconds kCompareAgain{1000};
constexpr std::chrono::milliseconds kNameTheOther{3000};  // until a peer with another size has published its call

// Tags of a message's two parts.
constexpr int kAnnouncement = 0;
constexpr int kTensor = 1;

// Special values for a rank's wait that is not for a member.
constexpr std::int64_t kEverybody = -1;
constexpr std::int64_t kNothing = -2;

constexpr std::chrono::milliseconds kNoDeadline = std::chrono::hours(24 * 365);

/// Set by another thread when an operation has ended; outlives a caller that gave up.
class Ending {
 public:
  void happen() {
    const std::lock_guard lock(mutex_);
    end_ns_ = monotonic_ns();
    ended_ = true;
    changed_.notify_all();
  }
  std::int64_t end_ns() {
    const std::lock_guard lock(mutex_);
    return end_ns_;
  }
  /// Returns false if the patience is exhausted first. Calls `look` now and then; it may throw.
  bool wait(Patience patience, const std::function<void()>& look) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, patience.slice(), [this] { return ended_; })) {
      if (patience.exhausted()) return false;
      lock.unlock();
      look();
      lock.lock();
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::int64_t end_ns_ = 0;
};

/// Returns the same memory as bytes: without sums Gloo then needs no dtype.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return at::from_blob(
      tensor.mutable_data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())}, [tensor](void*) {},
      at::TensorOptions(at::kByte));
}

void require_cpu(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) throw std::invalid_argument("backend gloo moves CPU tensors only; use backend nccl on a GPU");
}

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const CommGroup& group, c10::intrusive_ptr<c10d::Store> store,
                   c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo)
      : group_(group), watch_(group), store_(std::move(store)), gloo_(std::move(gloo)) {}

  ~GlooCommunicator() override {
    if (!failed_) say_calls();  // Gloo silently delivers less than expected: a peer may be in another call
    if (failed_ || under_way_ > 0) static_cast<void>(gloo_.release());
  }

  std::int64_t rank() const override { return group_.rank; }
  std::int64_t size() const override { return group_.size(); }
  std::string axis() const override { return group_.axis; }
  std::string backend() const override { return "gloo"; }

 protected:
  using Call = std::unique_ptr<PendingCall>;

  /// Gloo's own maximum drops a NaN in one order of operands and not in the other.
  Call do_all_reduce(at::Tensor tensor, Reduce op, Waits) override {
    require_cpu(tensor);
    if (op == Reduce::sum) {
      std::vector<at::Tensor> tensors{tensor};
      return collective("all_reduce", text_of(tensor), [&] { return gloo_->allreduce(tensors); });
    }
    at::Tensor all = at::empty({size(), tensor.numel()}, tensor.options());
    return gathered("all_reduce", text_of(tensor) + " (maximum)", all, tensor,
                    [all, tensor]() mutable { tensor.copy_(all.amax(0).view_as(tensor)); });
  }

  /// Uses an all-reduce, like Gloo itself.
  Call do_reduce_scatter(at::Tensor out, at::Tensor in, Waits) override {
    require_cpu(out);
    require_cpu(in);
    at::Tensor sum = in.clone();
    std::vector<at::Tensor> tensors{sum};
    return collective(
        "reduce_scatter", text_of(in), [&] { return gloo_->allreduce(tensors); },
        [this, sum, out]() mutable { out.copy_(sum.narrow(0, rank() * out.size(0), out.size(0))); });
  }

  Call do_all_gather(at::Tensor out, at::Tensor in, Waits) override {
    require_cpu(out);
    require_cpu(in);
    return gathered("all_gather", text_of(in), out.view({size(), in.numel()}), in, {});
  }

  Call do_broadcast(at::Tensor tensor, std::int64_t root) override {
    require_cpu(tensor);
    std::vector<at::Tensor> tensors{as_bytes(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    const std::int64_t from = group_.members[static_cast<std::size_t>(root)].world_rank;
    return collective("broadcast", text_of(tensor) + " from rank " + std::to_string(from),
                      [&] { return gloo_->broadcast(tensors, options); });
  }

  Call do_send(at::Tensor tensor, std::int64_t to, MessageLabel label) override {
    require_cpu(tensor);
    ++sent_[static_cast<std::size_t>(to)];
    return message("send", tensor, to, label, [&](std::vector<at::Tensor>& tensors, int tag) {
      return gloo_->send(tensors, static_cast<int>(to), tag);
    });
  }

  Call do_receive(at::Tensor tensor, std::int64_t from, MessageLabel label) override {
    require_cpu(tensor);
    return message("receive", tensor, from, label, [&](std::vector<at::Tensor>& tensors, int tag) {
      return gloo_->recv(tensors, static_cast<int>(from), tag);
    });
  }

  Call do_barrier() override {
    return collective("barrier", "", [&] { return gloo_->barrier(); });
  }

  void do_set_untimed(bool untimed) override { untimed_ = untimed; }

 private:
  using GlooWork = c10::intrusive_ptr<c10d::Work>;

  /// Description of a message, sent before its tensor under a separate tag.
  struct Content {
    MessageLabel label;
    std::int64_t numel = 0;
    at::ScalarType dtype = at::kByte;
    std::string text() const {
      const std::string what = label == MessageLabel() ? "" : label.text() + ", ";
      return what + std::to_string(numel) + " " + c10::toString(dtype);
    }
    at::Tensor numbers() const {
      const std::int64_t all[] = {static_cast<std::int64_t>(label.what), label.part, label.micro_step, numel,
                                  static_cast<std::int64_t>(dtype)};
      return at::tensor(at::IntArrayRef(all), at::kLong);
    }
    static Content of(const at::Tensor& numbers) {
      const auto* all = numbers.const_data_ptr<std::int64_t>();
      return {.label = {.what = static_cast<MessageLabel::What>(all[0]),
                        .part = static_cast<std::int32_t>(all[1]),
                        .micro_step = all[2]},
              .numel = all[3],
              .dtype = static_cast<at::ScalarType>(all[4])};
    }
  };

  static std::string text_of(const at::Tensor& tensor) {
    return Content{.numel = tensor.numel(), .dtype = tensor.scalar_type()}.text();
  }

  /// State of an operation in progress. A message has no callback at its end: a thread waits for it.
  struct Operation final : PendingCall {
    GlooCommunicator* owner = nullptr;
    std::string op;
    std::string text;         ///< with its contents
    std::int64_t peer = -1;   ///< of a message
    std::int64_t number = 0;  ///< index of a received message among those of its peer, of a collective among all
    at::Tensor content;       ///< of a message, as announced
    at::Tensor expected;      ///< of a message
    GlooWork announcement;    ///< of a message
    GlooWork work;
    std::vector<at::Tensor> kept;
    std::function<void()> afterwards;
    std::int64_t wait() override { return owner->finish(*this); }
  };

  /// Shapes: out [size, in.numel()].
  Call gathered(const char* op, std::string moves, const at::Tensor& out, const at::Tensor& in,
                std::function<void()> afterwards) {
    std::vector<at::Tensor> inputs{as_bytes(in)};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (std::int64_t r = 0; r < size(); ++r) outputs[0].push_back(as_bytes(out[r]));
    return collective(
        op, std::move(moves), [&] { return gloo_->allgather(outputs, inputs); }, std::move(afterwards));
  }

  template <typename F>
  std::unique_ptr<Operation> collective(const char* op, std::string moves, F&& start,
                                        std::function<void()> afterwards = {}) {
    last_calls_[0] = std::exchange(last_calls_[1], {++calls_, moves.empty() ? op : op + (" of " + moves)});
    auto operation = begun(op, std::move(moves), std::forward<F>(start), std::move(afterwards));
    operation->number = static_cast<std::int64_t>(calls_);
    return operation;
  }

  template <typename F>
  std::unique_ptr<Operation> begun(const char* op, std::string text, F&& start, std::function<void()> afterwards = {}) {
    if (failed_) throw CommError("the group has failed before and cannot be used again");
    auto operation = std::make_unique<Operation>();
    operation->owner = this;
    operation->op = op;
    operation->text = std::move(text);
    operation->afterwards = std::move(afterwards);
    try {
      operation->work = start();
    } catch (const std::exception& error) {
      fail(*operation, error);
    }
    ++under_way_;
    return operation;
  }

  template <typename F>
  Call message(const char* op, const at::Tensor& tensor, std::int64_t peer, MessageLabel label, F&& start) {
    const Content content{.label = label, .numel = tensor.numel(), .dtype = tensor.scalar_type()};
    const at::Tensor expected = content.numbers();
    std::vector<at::Tensor> announced{expected.clone()}, tensors{as_bytes(tensor)};
    GlooWork announcement;
    auto operation = begun(op, content.text(), [&] {
      announcement = start(announced, kAnnouncement);
      return start(tensors, kTensor);
    });
    operation->peer = peer;
    if (operation->op == "receive") operation->number = ++received_[static_cast<std::size_t>(peer)];
    operation->content = announced.front();
    operation->expected = expected;
    operation->announcement = announcement;
    operation->kept = tensors;
    return operation;
  }

  std::int64_t finish(Operation& operation) {
    const auto ending = std::make_shared<Ending>();
    if (operation.peer < 0) {
      operation.work->getFuture()->addCallback([ending](c10::ivalue::Future&) { ending->happen(); });
    } else {
      std::thread([ending, announcement = operation.announcement, work = operation.work, kept = operation.kept,
                   content = operation.content, expected = operation.expected] {
        try {
          announcement->wait();
          if (content.equal(expected)) work->wait();
        } catch (const std::exception&) {
          // The caller checks the work itself.
        }
        ending->happen();
      }).detach();
    }
    auto next_look = std::chrono::steady_clock::now() + kCompareAfter;
    const auto give_up_looking = next_look + kNameTheOther;
    const auto look = [&] {
      if (std::chrono::steady_clock::now() < next_look) return;
      say_what_is_waited_for(operation);
      if (operation.peer < 0) compare_calls();
      if (operation.peer >= 0 && operation.number > 0) compare_waits(operation);
      if (gloo_has_halted() && std::chrono::steady_clock::now() > give_up_looking) refuse_what_came(operation);
      next_look = std::chrono::steady_clock::now() + (gloo_has_halted() ? kCompareAfter : kCompareAgain);
    };
    if (!ending->wait(Patience(group_.timeout, untimed_), look)) {
      failed_ = true;
      const auto late = operation.peer < 0 ? "a peer" : group_.name_of(static_cast<std::size_t>(operation.peer));
      throw CommError(explain(late + " did not come " + group_.within() + " to ") + doing(operation));
    }
    if (operation.peer >= 0) compare_contents(operation);
    try {
      if (operation.peer >= 0 && operation.announcement->exception())
        std::rethrow_exception(operation.announcement->exception());
      // A message has already been waited for, which is possible only once.
      if (operation.peer < 0) operation.work->wait();
      if (operation.work->exception()) std::rethrow_exception(operation.work->exception());
    } catch (const std::exception& error) {
      fail(operation, error);
    }
    if (operation.afterwards) operation.afterwards();
    --under_way_;
    return ending->end_ns();
  }

  void compare_contents(const Operation& operation) {
    if (operation.announcement->exception() || operation.content.equal(operation.expected)) return;
    failed_ = true;
    give_up();
    throw CommError(group_.name_of(static_cast<std::size_t>(operation.peer)) +
                    " sent another message than was to be received; this rank was in " + doing(operation) +
                    ", and it sends " + Content::of(operation.content).text());
  }

  std::map<std::string, std::string> own_calls() const {
    std::map<std::string, std::string> here;
    for (const auto& [number, text] : last_calls_)
      if (number > 0) here[std::to_string(number)] = text;
    return here;
  }

  /// Returns false if the store has gone with its host.
  bool say_calls() const {
    try {
      std::string said;
      for (const auto& [number, text] : own_calls()) said += number + " " + text + "\n";
      if (!said.empty()) store_->set(call_key(static_cast<std::size_t>(group_.rank)), said);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// Publishes this rank's current collective, and throws CommError if a peer is in another one with the same number. A
  /// rank may be one ahead of another, which waits for its data, so each publishes its last two.
  void compare_calls() {
    if (!say_calls()) return;
    const auto here = own_calls();
    for (std::size_t member = 0; member < group_.members.size(); ++member) {
      if (member == static_cast<std::size_t>(group_.rank)) continue;
      for (const auto& [number, text] : calls_of(member)) {
        const auto mine = here.find(number);
        if (mine == here.end() || mine->second == text) continue;
        failed_ = true;
        give_up();
        throw CommError("the ranks call different collectives: this rank " + mine->second + " (call " + number +
                        " on the " + group_.axis + " axis), " + group_.name_of(member) + " " + text +
                        "; all ranks of an axis must call the same ones in the same order");
      }
    }
  }

  /// Publishes this rank's wait, and the number of earlier messages to each member.
  void say_what_is_waited_for(const Operation& operation) const {
    std::ostringstream said;
    for (const std::int64_t count : sent_) said << count << " ";
    const bool sends = operation.peer >= 0 && operation.number == 0;
    said << (sends ? kNothing : operation.peer) << " " << operation.number << " " << doing(operation);
    try {
      store_->set(wait_key(static_cast<std::size_t>(group_.rank)), said.str());
    } catch (const std::exception&) {
      // the store has gone with its host
    }
  }

  /// A rank's published wait.
  struct Wait {
    std::vector<std::int64_t> sent;  ///< earlier messages, by member
    std::int64_t peer = kNothing;    ///< rank that it waits for
    std::int64_t number = 0;         ///< of the message or the call
    std::string text;
  };
  std::optional<Wait> wait_of(std::size_t member) const {
    try {
      if (!store_->check({wait_key(member)})) return std::nullopt;
      std::istringstream said(store_->get_to_str(wait_key(member)));
      Wait wait{.sent = std::vector<std::int64_t>(group_.members.size())};
      for (std::int64_t& count : wait.sent) said >> count;
      if (!(said >> wait.peer >> wait.number) || !std::getline(said >> std::ws, wait.text)) return std::nullopt;
      return wait;
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  /// Throws CommError if the sender waits for something that this rank has not begun, directly or through others that
  /// wait for each other's messages: none of it will ever begin. Published waits may be outdated, but not in this case:
  /// the last of them still waits for this rank, so its messages are complete, and so on back to the sender.
  void compare_waits(const Operation& operation) {
    std::string others;
    std::int64_t ranks = 1, waiting = group_.rank, number = operation.number;
    for (std::int64_t sender = operation.peer;; ++ranks) {
      const auto wait = wait_of(static_cast<std::size_t>(sender));
      if (ranks == size() || !wait || wait->sent[static_cast<std::size_t>(waiting)] >= number) return;
      others += ", " + group_.name_of(static_cast<std::size_t>(sender)) + " in " + wait->text;
      const bool for_a_call = wait->peer == kEverybody && wait->number > static_cast<std::int64_t>(calls_);
      if (wait->peer == group_.rank && wait->number <= sent_[static_cast<std::size_t>(sender)]) return;
      if (for_a_call || wait->peer == group_.rank) break;
      if (wait->peer < 0 || wait->peer >= size()) return;
      waiting = std::exchange(sender, wait->peer);
      number = wait->number;
    }
    failed_ = true;
    give_up();
    const std::string count = ranks == 1 ? "two" : std::to_string(ranks + 1);
    throw CommError(count + " ranks wait for each other: this rank in " + doing(operation) + others +
                    "; what one receives the other must send first");
  }

  [[noreturn]] void refuse_what_came(const Operation& operation) {
    failed_ = true;
    throw CommError(explain("a peer sent data of another size to ") + doing(operation));
  }

  std::map<std::string, std::string> calls_of(std::size_t member) const {
    std::map<std::string, std::string> calls;
    try {
      if (!store_->check({call_key(member)})) return calls;
      std::istringstream said(store_->get_to_str(call_key(member)));
      for (std::string number, text; said >> number && std::getline(said >> std::ws, text);) calls[number] = text;
    } catch (const std::exception&) {
    }
    return calls;
  }
  static std::string wait_key(std::size_t member) { return "wait/" + std::to_string(member); }
  static std::string call_key(std::size_t member) { return "call/" + std::to_string(member); }

  [[noreturn]] void fail(const Operation& operation, const std::exception& error) {
    failed_ = true;
    if (operation.peer < 0) compare_calls();  // it may have gone because of another call
    throw CommError(explain("the connection to a peer failed in ") + doing(operation) + ": " +
                    first_line(error.what()));
  }

  std::string doing(const Operation& operation) const {
    const std::string peer =
        operation.peer < 0 ? "" : " with " + group_.name_of(static_cast<std::size_t>(operation.peer));
    const std::string what = operation.text.empty() ? "" : " of " + operation.text;
    return operation.op + what + peer + " on the " + group_.axis + " axis";
  }

  static std::string gave_up_key(std::size_t member) { return "gave up/" + std::to_string(member); }

  /// A rank that ends because another one did publishes that first: it is not the cause.
  bool gave_up(std::size_t member) const {
    try {
      return store_->check({gave_up_key(member)});
    } catch (const std::exception&) {
      return false;  // the store has gone with its host
    }
  }

  void give_up() const {
    try {
      store_->set(gave_up_key(static_cast<std::size_t>(group_.rank)), std::vector<std::uint8_t>{1});
    } catch (const std::exception&) {
    }
  }

  /// Returns a dead peer's name, else the observation.
  std::string explain(std::string seen) const {
    give_up();
    const auto deadline = std::chrono::steady_clock::now() + kNameTheDead;
    do {
      for (std::size_t member = 0; member < group_.members.size(); ++member) {
        if (watch_.ended(member) && !gave_up(member))
          return group_.name_of(member) + " ended while the others waited for it in ";
      }
      std::this_thread::sleep_for(kLook);
    } while (std::chrono::steady_clock::now() < deadline);
    return seen;
  }

  CommGroup group_;
  PeerWatch watch_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  bool failed_ = false;
  bool untimed_ = false;
  int under_way_ = 0;                                                                  ///< begun and not yet waited for
  std::vector<std::int64_t> sent_ = std::vector<std::int64_t>(group_.members.size());  ///< messages, by member
  std::vector<std::int64_t> received_ = std::vector<std::int64_t>(group_.members.size());  ///< begun, by member
  std::uint64_t calls_ = 0;
  std::array<std::pair<std::uint64_t, std::string>, 2> last_calls_;  ///< numbers from 1, and calls
};

/// Gloo writes to sockets whose peer may have died. That must be a CommError, not the end of the process, unless the
/// program has its own handler.
void ignore_broken_pipes() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

using GlooOptions = c10d::ProcessGroupGloo::Options;

/// Chooses the address on which this rank listens, and describes it. The user's choice has precedence, in Gloo's form;
/// Gloo itself would use this host's name, which may resolve to the loopback interface.
Result<std::string> choose_device(const CommGroup& group, GlooOptions& options) {
  if (const char* chosen = std::getenv("GLOO_SOCKET_IFNAME"); chosen != nullptr && *chosen != '\0') {
    std::stringstream names(chosen);
    for (std::string name; std::getline(names, name, ',');)
      options.devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(name));
    return chosen + std::string(" (GLOO_SOCKET_IFNAME)");
  }
  if (group.one_host) {
    options.devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    return std::string("lo (127.0.0.1)");
  }
  const auto own = address_towards(group.meeting_host, group.one_machine);
  if (!own) return tl::unexpected(own.error());
  options.devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own->address));
  return own->text();
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_gloo_communicator(const CommGroup& group,
                                                             const c10::intrusive_ptr<c10d::Store>& store) {
  constexpr int kGlooWaits = 5;  // time-outs that Gloo waits for a connection
  ignore_broken_pipes();
  halt_gloo_at_errors();
  std::string listens = "an interface that does not exist";
  try {
    auto options = GlooOptions::create(std::max(group.join_timeout / kGlooWaits, std::chrono::milliseconds(1)));
    auto device = choose_device(group, *options);
    if (!device) return tl::unexpected(device.error());
    listens = std::move(*device);
    options->threads = 1;
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(group.rank),
                                                            static_cast<int>(group.size()), std::move(options));
    gloo->setTimeout(kNoDeadline);
    return std::make_unique<GlooCommunicator>(group, store, std::move(gloo));
  } catch (const std::exception& error) {
    return fail(ErrorCode::rendezvous,
                "Gloo could not connect the ranks within " + seconds_text(group.join_timeout) +
                    ". This one listens on " + listens + ": " + first_line(error.what()),
                "backend gloo", unconnected_hint(group.one_host, std::getenv("GLOO_SOCKET_IFNAME")));
  }
}

}  // namespace accrue
