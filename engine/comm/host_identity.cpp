// SPDX-License-Identifier: Apache-2.0
#include "host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace accrue {

std::string HostIdentity::encode() const {
  return host + "\n" + place + "\n" + std::to_string(pid);
}

std::optional<HostIdentity> HostIdentity::decode(const std::string& text) {
  std::istringstream in(text);
  HostIdentity identity;
  if (!std::getline(in, identity.host) || !std::getline(in, identity.place) || !(in >> identity.pid))
    return std::nullopt;
  return identity;
}

HostIdentity this_host() {
  HostIdentity identity;
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  identity.host = name;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
  struct stat pids {};
  ::stat("/proc/self/ns/pid", &pids);
  identity.place = identity.host + " " + boot + " " + std::to_string(pids.st_ino);
  identity.pid = ::getpid();
  return identity;
}

}  // namespace accrue
