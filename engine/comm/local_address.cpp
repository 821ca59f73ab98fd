// SPDX-License-Identifier: Apache-2.0
// Connecting a datagram socket sends nothing, but makes the kernel choose the source address.
#include "local_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/owned_fd.h"

namespace accrue {
namespace {

constexpr const char* kChoose = "GLOO_SOCKET_IFNAME names the network interface to use (\"ip address\" lists them)";

std::string numeric(const sockaddr* address) {
  char text[NI_MAXHOST] = {};
  const socklen_t size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  ::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

/// Without link-local ones.
std::vector<OwnAddress> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<OwnAddress> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const auto family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr))
      continue;
    found.push_back({{numeric(each->ifa_addr), each->ifa_name}, (each->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

/// Source address of packets to that address; empty if there is no route.
std::string source_for(const addrinfo& target) {
  const OwnedFd fd(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* generic = reinterpret_cast<sockaddr*>(&own);
  const bool known =
      ::connect(fd.get(), target.ai_addr, target.ai_addrlen) == 0 && ::getsockname(fd.get(), generic, &size) == 0;
  return known ? numeric(generic) : std::string();
}

/// For a host whose own name resolves to the loopback interface: its only network address. IPv4 is preferred.
Result<LocalAddress> only_address(const std::string& host, const std::vector<OwnAddress>& all) {
  std::vector<OwnAddress> others;
  for (const OwnAddress& each : all)
    if (!each.loopback) others.push_back(each);
  std::erase_if(others, [&](const OwnAddress& each) {
    return each.address.find(':') != std::string::npos && std::ranges::any_of(others, [](const OwnAddress& four) {
             return four.address.find(':') == std::string::npos;
           });
  });
  if (others.size() == 1) return others.front();
  return fail(ErrorCode::rendezvous,
              "MASTER_ADDR=" + host + " leads to the loopback interface here, which no other host reaches; " +
                  (others.empty() ? "there is no other interface"
                                  : "the others are " + joined(others, ", ", &OwnAddress::text)),
              "backend gloo", kChoose);
}

}  // namespace

bool is_loopback_name(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<LocalAddress> choose_address(const std::string& host, bool one_machine, const std::vector<std::string>& sources,
                                    const std::vector<OwnAddress>& own) {
  for (const std::string& source : sources) {
    const auto from = std::ranges::find(own, source, &OwnAddress::address);
    if (from == own.end()) continue;
    // A rank that met the others at such an address shares their network; if the name of rank 0's host resolves to it
    // only on rank 0, it does not.
    if (from->loopback && !(one_machine && is_loopback_name(host))) return only_address(host, own);
    return *from;
  }
  return fail(ErrorCode::rendezvous, "no route leads to MASTER_ADDR=" + host, "backend gloo", kChoose);
}

Result<LocalAddress> address_towards(const std::string& host, bool one_machine) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), "1", &hints, &first); error != 0)
    return fail(ErrorCode::rendezvous, "MASTER_ADDR=" + host + " does not resolve: " + ::gai_strerror(error),
                "backend gloo", "Give the address or name of rank 0's host");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> targets(first, &::freeaddrinfo);
  std::vector<std::string> sources;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) sources.push_back(source_for(*each));
  return choose_address(host, one_machine, sources, own_addresses());
}

std::string unconnected_hint(bool one_host, const char* chosen) {
  const std::string name = chosen == nullptr ? "" : chosen;
  if (one_host && (name.empty() || name == "lo"))
    return "All ranks are on this host: another one has ended, or is too slow to join. Its own message says why";
  return std::string("The other ranks must reach that interface. ") + kChoose;
}

}  // namespace accrue
