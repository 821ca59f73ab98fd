// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace accrue {

void open_standard_streams() {
  // open() takes the lowest free number, so each call fills the next gap.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) static_cast<void>(::open("/dev/null", O_RDWR));
}

}  // namespace accrue
