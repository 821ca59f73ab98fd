// SPDX-License-Identifier: Apache-2.0
// Where the harness' ranks come from: a process that was forked before the test made its first thread, with every
// library loaded. A rank is a fork of it: a process of its own, with its own environment and descriptors, that does not
// load LibTorch once more, which would take longer than most of what ranks do in tests. Needs Linux.
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
  /// In a rank: its main function, which answers the exit status.
  using Main = std::function<int(const std::string& body, const std::vector<std::string>& arguments)>;

  /// Call it first in main(), before anything makes a thread. Throws std::system_error.
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
