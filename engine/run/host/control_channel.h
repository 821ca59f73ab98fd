// SPDX-License-Identifier: Apache-2.0
// The control socket of a live run: one JSON line a command, one JSON line an answer. The protocol is described in
// EVENTS.md. Thread: engine.
#pragma once

#include <poll.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/host_command.h"
#include "accrue/run/owned_fd.h"
#include "accrue/run/result.h"

namespace accrue {

std::string encode_control(const HostCommand& command);
Result<HostCommand> decode_control(std::string_view line);

/// What the supervisor answers: the state it is in, or why it refused.
struct ControlAnswer {
  bool ok = false;
  std::string state;
  std::string error;
};
std::string encode_answer(const ControlAnswer& answer);
Result<ControlAnswer> decode_answer(std::string_view line);

/// <dir>/<run id>.sock; the folder is $XDG_RUNTIME_DIR/accrue, or /tmp/accrue-<uid> where that variable names no folder
/// or its path is too long for a socket.
std::filesystem::path control_socket_path(const std::string& run_id);

/// Removes the sockets of supervisors that were killed from the folder that this run's is in.
void clear_dead_sockets(const std::string& run_id);

/// The listening side. Answers at once; a client that does not read its answers is dropped, and where there are too
/// many the one that has been idle for longest.
class ControlServer {
 public:
  /// Clears dead sockets on the way. Errors: the folder is not ours alone, or the socket cannot be
  /// bound (device); run_id is not a run's name (protocol).
  static Result<ControlServer> open(const std::string& run_id);
  ControlServer(ControlServer&&) noexcept;
  ControlServer& operator=(ControlServer&&) noexcept;
  /// Removes the socket file.
  ~ControlServer();

  void add_poll(std::vector<pollfd>& fds) const;
  using Handler = std::function<ControlAnswer(const HostCommand&)>;
  /// Accepts, reads and answers whatever waits; never blocks.
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
  std::vector<Client> clients_;  ///< the one that spoke last is last
};

/// The asking side. Answers come later, by take_answers.
class ControlClient {
 public:
  /// Errors: no process listens there (peer_lost); run_id is not a run's name (protocol).
  static Result<ControlClient> connect(const std::string& run_id);
  int fd() const { return fd_.get(); }
  Result<void> send(const HostCommand& command);
  /// Answers that have arrived; false in `open` once the supervisor has closed the connection.
  std::vector<ControlAnswer> take_answers(bool& open);

 private:
  explicit ControlClient(OwnedFd fd) : fd_(std::move(fd)) {}
  OwnedFd fd_;
  std::string partial_;
};

}  // namespace accrue
