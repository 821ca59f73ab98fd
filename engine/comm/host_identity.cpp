// SPDX-License-Identifier: Apache-2.0
#include "host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace accrue {

std::string HostIdentity::encode() const {
  return host + "\n" + place + "\n" + std::to_string(pid) + "\n" + std::to_string(static_cast<int>(instructions)) +
         (tiles_pay ? " 1" : " 0");
}

std::optional<HostIdentity> HostIdentity::decode(const std::string& text) {
  std::istringstream in(text);
  HostIdentity identity;
  int instructions = -1, tiles = -1;
  if (!std::getline(in, identity.host) || !std::getline(in, identity.place) ||
      !(in >> identity.pid >> instructions >> tiles))
    return std::nullopt;
  if (tiles < 0 || tiles > 1 || instructions < 0 || instructions > static_cast<int>(InstructionSet::avx512))
    return std::nullopt;
  identity.instructions = static_cast<InstructionSet>(instructions);
  identity.tiles_pay = tiles == 1;
  return identity;
}

bool HostIdentity::same_machine(const HostIdentity& other) const {
  const std::string boot = place.substr(0, place.find(' '));
  return !boot.empty() && other.place.starts_with(boot + " ");
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
  identity.place = boot + " " + identity.host + " " + std::to_string(pids.st_ino);
  identity.pid = ::getpid();
  identity.instructions = instruction_set();
  identity.tiles_pay = tiles_pay();
  return identity;
}

}  // namespace accrue
