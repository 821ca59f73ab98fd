// SPDX-License-Identifier: Apache-2.0
// Control socket of a live run: each command and each answer is one JSON line. EVENTS.md describes the protocol.
// Thread: engine.
#pragma once

#include <poll.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"
#include "accrue/run/events/host_command.h"

namespace accrue {

std::string encode_control(const HostCommand& command);
Result<HostCommand> decode_control(std::string_view line);

/// The supervisor's answer: its state, or the reason of a refusal.
struct ControlAnswer {
  bool ok = false;
  std::string state;
  std::string error;
};
std::string encode_answer(const ControlAnswer& answer);
Result<ControlAnswer> decode_answer(std::string_view line);

/// Returns <dir>/<run id>.sock. The folder is $XDG_RUNTIME_DIR/accrue, or /tmp/accrue-<uid> if that variable does not
/// name a folder or its path is too long for a socket.
std::filesystem::path control_socket_path(const std::string& run_id);

/// Removes the sockets of killed supervisors from the folder of this run's socket.
void clear_dead_sockets(const std::string& run_id);

/// Server side. Answers at once. A client that does not read its answers is dropped; if there are too many clients, the
/// one that was idle longest is.
class ControlServer {
 public:
  /// Removes dead sockets first. Errors: the folder belongs to another user or is open to others, or the socket cannot
  /// be bound (device); run_id is not a run's name (protocol).
  static Result<ControlServer> open(const std::string& run_id);
  ControlServer(ControlServer&&) noexcept;
  ControlServer& operator=(ControlServer&&) noexcept;
  /// Removes the socket file.
  ~ControlServer();

  void add_poll(std::vector<pollfd>& fds) const;
  using Handler = std::function<ControlAnswer(const HostCommand&)>;
  /// Accepts, reads and answers all waiting requests; never blocks.
  void serve(const Handler& handler);

 private:
  struct Client {
    OwnedFd fd;
    std::string partial;
    bool has_spoken = false;  ///< in this turn
  };
  ControlServer() = default;
  void accept_clients();
  bool serve_client(Client& client, const Handler& handler);

  OwnedFd listener_;
  std::filesystem::path path_;
  std::vector<Client> clients_;  ///< the last speaker is last
};

/// Client side. take_answers() returns the answers later.
class ControlClient {
 public:
  /// Errors: no process listens (peer_lost); run_id is not a run's name (protocol).
  static Result<ControlClient> connect(const std::string& run_id);
  int fd() const { return fd_.get(); }
  Result<void> send(const HostCommand& command);
  /// Returns the answers that have arrived. Sets `open` to false once the supervisor has closed the connection.
  std::vector<ControlAnswer> take_answers(bool& open);

 private:
  explicit ControlClient(OwnedFd fd) : fd_(std::move(fd)) {}
  OwnedFd fd_;
  std::string partial_;
};

}  // namespace accrue
