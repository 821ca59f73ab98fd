// SPDX-License-Identifier: Apache-2.0
// Starts the harness's ranks: a forker process that is forked with every library loaded, before the test creates a
// thread. A rank is a fork of the forker, with its own environment and descriptors; it need not load LibTorch again,
// which would take longer than most tests of ranks. Needs Linux.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace accrue::test {

/// A rank to start. Descriptors are the caller's.
struct RankStart {
  std::string body;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  int output = -1;                       ///< becomes standard output and error
  std::vector<int> descriptors;          ///< become 3, 4, ...
};

class RankForker {
 public:
  /// A rank's main function; returns its exit status.
  using Main = std::function<int(const std::string& body, const std::vector<std::string>& arguments)>;

  /// Call it first in main(), before any thread is created. Throws std::system_error.
  explicit RankForker(Main main);
  ~RankForker();
  RankForker(const RankForker&) = delete;
  RankForker& operator=(const RankForker&) = delete;

  /// The rank is a child of the calling process. Throws std::system_error.
  pid_t start(const RankStart& rank);

 private:
  int socket_ = -1;
  pid_t pid_ = -1;
};

}  // namespace accrue::test
