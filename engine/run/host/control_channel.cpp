// SPDX-License-Identifier: Apache-2.0
// A run that outlives its window must accept commands from its owner and from no one else. Hence a Unix socket (mode
// 0600) in a private folder of the user (0700), and a check of the user id of every connection. Events are not sent
// here: they are in the run folder.
#include "control_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "json_text.h"
#include "run_id.h"

namespace accrue {
namespace {

namespace fs = std::filesystem;

constexpr int control_version = 1;
constexpr std::size_t max_line_bytes = 4096;
constexpr std::size_t max_clients = 32;
constexpr std::array<std::string_view, 11> command_names = {
    "status", "pause",     "continue",  "step", "step_update", "stop", "checkpoint", "checkpoint_and_stop",
    "kill",   "set_steps", "step_phase"};

fs::path short_folder() {
  return fmt::format("/tmp/accrue-{}", ::getuid());
}

/// The session's own folder, if this process has one: a scheduler may pass on the variable without the folder.
std::optional<fs::path> session_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  if (runtime == nullptr || runtime[0] != '/' || !fs::is_directory(runtime, error)) return std::nullopt;
  return fs::path(runtime) / "accrue";
}

bool fits_socket(const fs::path& path) {
  return path.native().size() < sizeof(sockaddr_un::sun_path);
}

/// A run's name comes from a file; as part of a path it could point anywhere.
Result<void> check_run_id(const std::string& run_id) {
  if (is_run_id(run_id)) return {};
  return fail(ErrorCode::protocol, fmt::format("\"{}\" is not a run's name, so it has no control socket", run_id));
}

/// The folder must belong to this user and be closed to others: in /tmp, anything else could be another user's trap.
Result<void> ensure_private(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorCode::device, fmt::format("cannot be made: {}", std::strerror(errno)), folder.string());
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != ::getuid())
    return fail(ErrorCode::device, "is not a folder of this user", folder.string(), "Remove it or set XDG_RUNTIME_DIR");
  if ((facts.st_mode & 0077) != 0 && ::chmod(folder.c_str(), 0700) != 0)
    return fail(ErrorCode::device, "is open to other users", folder.string(), "chmod 700 it");
  return {};
}

Result<sockaddr_un> socket_address(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!fits_socket(path))
    return fail(ErrorCode::device, "the path is too long for a socket", path.string(), "Set a shorter XDG_RUNTIME_DIR");
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  return address;
}

/// Temporary name of a bound socket, which is renamed once it listens.
std::string hidden(const std::string& name) {
  return "." + name;
}

/// Whether no process listens. A socket with its final name was listening once; one with the hidden name may be about
/// to, unless it is old.
bool is_dead(const fs::path& path) {
  constexpr auto soon = std::chrono::minutes(1);
  std::error_code error;
  const bool is_hidden = path.filename().string().starts_with('.');
  if (is_hidden && (fs::file_time_type::clock::now() - fs::last_write_time(path, error) < soon || error)) return false;
  const auto address = socket_address(path);
  if (!address) return false;
  const OwnedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return false;
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 &&
         errno == ECONNREFUSED;
}

void clear_dead_in(const fs::path& folder) {
  std::vector<fs::path> dead;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".sock" && is_dead(at->path())) dead.push_back(at->path());
  for (const fs::path& path : dead) ::unlink(path.c_str());
}

bool is_same_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::getuid();
}

/// Appends readable bytes to `partial`; false at the end of the connection.
bool read_available(int fd, std::string& partial) {
  char bytes[4096];
  for (;;) {
    const auto count = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (count == 0) return false;
    partial.append(bytes, static_cast<std::size_t>(count));
    if (partial.size() > 16 * max_line_bytes) return false;
  }
}

bool send_line(int fd, std::string line) {
  line += '\n';
  return ::send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(line.size());
}

Result<Json> parse_line(std::string_view line) {
  if (line.size() > max_line_bytes || json_depth(line) > 4)
    return fail(ErrorCode::protocol, "a control line is too long or too deep");
  auto json = parse_json(line);
  if (!json.is_object()) return fail(ErrorCode::protocol, "a control line is not a JSON object");
  const auto version = json.find("v");
  if (version == json.end() || *version != control_version)
    return fail(ErrorCode::protocol,
                fmt::format("control protocol version {} where this program speaks {}",
                            version == json.end() ? "none" : json_text(*version), control_version));
  return json;
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string encode_control(const HostCommand& command) {
  const auto name = command_names[static_cast<std::size_t>(command.verb)];
  if (command.verb == HostVerb::set_steps)
    return fmt::format(R"({{"v":{},"command":"{}","steps":{}}})", control_version, name, command.steps);
  return fmt::format(R"({{"v":{},"command":"{}"}})", control_version, name);
}

Result<HostCommand> decode_control(std::string_view line) {
  const auto json = parse_line(line);
  if (!json) return tl::unexpected(json.error());
  const auto name = text_of(*json, "command");
  for (std::size_t i = 0; i < command_names.size(); ++i) {
    if (command_names[i] != name) continue;
    HostCommand command{static_cast<HostVerb>(i), 0};
    if (command.verb != HostVerb::set_steps) return command;
    const auto steps = json->find("steps");
    if (steps == json->end() || !steps->is_number_integer())
      return fail(ErrorCode::protocol, "control command \"set_steps\" lacks the whole number \"steps\"");
    command.steps = steps->get<std::int64_t>();
    return command;
  }
  return fail(ErrorCode::protocol, fmt::format("unknown control command \"{}\"", name));
}

std::string encode_answer(const ControlAnswer& answer) {
  Json json;
  json["v"] = control_version;
  json["ok"] = answer.ok;
  json["state"] = answer.state;
  if (!answer.error.empty()) json["error"] = answer.error;
  return json_text(json);
}

Result<ControlAnswer> decode_answer(std::string_view line) {
  const auto json = parse_line(line);
  if (!json) return tl::unexpected(json.error());
  const auto ok = json->find("ok");
  if (ok == json->end() || !ok->is_boolean()) return fail(ErrorCode::protocol, "a control answer lacks \"ok\"");
  return ControlAnswer{ok->get<bool>(), text_of(*json, "state"), text_of(*json, "error")};
}

fs::path control_socket_path(const std::string& run_id) {
  const std::string name = run_id + ".sock";
  const auto session = session_folder();
  return session && fits_socket(*session / hidden(name)) ? *session / name : short_folder() / name;
}

void clear_dead_sockets(const std::string& run_id) {
  const fs::path folder = control_socket_path(run_id).parent_path();
  if (ensure_private(folder)) clear_dead_in(folder);
}

Result<ControlServer> ControlServer::open(const std::string& run_id) {
  if (auto named = check_run_id(run_id); !named) return tl::unexpected(named.error());
  ControlServer server;
  const fs::path path = control_socket_path(run_id);
  if (auto folder = ensure_private(path.parent_path()); !folder) return tl::unexpected(folder.error());
  clear_dead_in(path.parent_path());
  const fs::path bound = path.parent_path() / hidden(path.filename().string());
  const auto address = socket_address(bound);
  if (!address) return tl::unexpected(address.error());
  server.listener_ = OwnedFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::unlink(bound.c_str());  // left by a killed supervisor: this process holds the run's lock, so there is no other
  const auto* generic = reinterpret_cast<const sockaddr*>(&*address);
  if (!server.listener_ || ::bind(server.listener_.get(), generic, sizeof *address) != 0 ||
      ::chmod(bound.c_str(), 0600) != 0 || ::listen(server.listener_.get(), 16) != 0 ||
      ::rename(bound.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(bound.c_str());
    return fail(ErrorCode::device, fmt::format("the control socket cannot be opened: {}", std::strerror(error)),
                path.string());
  }
  server.path_ = path;
  return server;
}

ControlServer::ControlServer(ControlServer&& other) noexcept {
  *this = std::move(other);
}

ControlServer& ControlServer::operator=(ControlServer&& other) noexcept {
  std::swap(listener_, other.listener_);
  std::swap(path_, other.path_);
  std::swap(clients_, other.clients_);
  return *this;
}

ControlServer::~ControlServer() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void ControlServer::add_poll(std::vector<pollfd>& fds) const {
  fds.push_back({listener_.get(), POLLIN, 0});
  for (const auto& client : clients_) fds.push_back({client.fd.get(), POLLIN, 0});
}

void ControlServer::serve(const Handler& handler) {
  accept_clients();
  std::erase_if(clients_, [&](Client& client) { return !serve_client(client, handler); });
  std::stable_partition(clients_.begin(), clients_.end(), [](const Client& client) { return !client.has_spoken; });
  for (Client& client : clients_) client.has_spoken = false;
}

void ControlServer::accept_clients() {
  for (;;) {
    OwnedFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (!is_same_user(fd.get())) continue;
    if (clients_.size() == max_clients) clients_.erase(clients_.begin());  // the client that was silent longest
    clients_.push_back({std::move(fd), {}, false});
  }
}

bool ControlServer::serve_client(Client& client, const Handler& handler) {
  const bool open = read_available(client.fd.get(), client.partial);
  for (auto end = client.partial.find('\n'); end != std::string::npos; end = client.partial.find('\n')) {
    client.has_spoken = true;
    const auto command = decode_control(std::string_view(client.partial).substr(0, end));
    client.partial.erase(0, end + 1);
    const auto answer = command ? handler(*command) : ControlAnswer{false, {}, command.error().message};
    if (!send_line(client.fd.get(), encode_answer(answer))) return false;
  }
  return open && client.partial.size() <= max_line_bytes;
}

namespace {

/// Errors: no process listens, or another user's does.
Result<OwnedFd> connected_to(const fs::path& path) {
  const auto address = socket_address(path);
  if (!address) return tl::unexpected(address.error());
  OwnedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return fail(ErrorCode::peer_lost, fmt::format("no supervisor answers: {}", std::strerror(errno)), path.string());
  if (!is_same_user(fd.get())) return fail(ErrorCode::peer_lost, "another user listens there", path.string());
  return fd;
}

}  // namespace

Result<ControlClient> ControlClient::connect(const std::string& run_id) {
  if (auto named = check_run_id(run_id); !named) return tl::unexpected(named.error());
  const fs::path path = control_socket_path(run_id);
  auto fd = connected_to(path);
  // A run may be trained outside this session, for example by a scheduler.
  if (const fs::path other = short_folder() / path.filename(); !fd && other != path)
    if (auto outside = connected_to(other)) fd = std::move(outside);
  if (!fd) return tl::unexpected(fd.error());
  return ControlClient(std::move(*fd));
}

Result<void> ControlClient::send(const HostCommand& command) {
  if (send_line(fd_.get(), encode_control(command))) return {};
  return fail(ErrorCode::peer_lost, "the supervisor of this run cannot be reached");
}

std::vector<ControlAnswer> ControlClient::take_answers(bool& open) {
  open = read_available(fd_.get(), partial_);
  std::vector<ControlAnswer> answers;
  for (auto end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n')) {
    if (auto answer = decode_answer(std::string_view(partial_).substr(0, end))) answers.push_back(std::move(*answer));
    partial_.erase(0, end + 1);
  }
  return answers;
}

}  // namespace accrue
