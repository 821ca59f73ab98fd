// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/base/system_error.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "accrue/run/base/number_text.h"

namespace accrue {

std::string system_words(int error) {
  rlimit limit{};
  if (error == EFBIG && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return fmt::format("{}: a file may hold at most {} (ulimit -f)", std::strerror(error),
                       format_bytes(limit.rlim_cur));
  if (error == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    return fmt::format("{}: the limit is {} (ulimit -n)", std::strerror(error), limit.rlim_cur);
  return std::strerror(error);
}

std::string system_hint(int error, FileUse use) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "Free some space, or choose a folder on another disk";
    case EFBIG:
      return "Raise the limit on the size of files: ulimit -f unlimited";
    case EACCES:
    case EPERM:
    case EROFS:
      return use == FileUse::read ? "Check its permissions" : "Choose a folder that you may write";
    case ENOENT:
      return "Check the path";
    case EMFILE:
      return "Raise the limit on open files (ulimit -n)";
    case ENFILE:
      return "Too many files are open on this system: end some programs";
    default:
      return {};
  }
}

tl::unexpected<Error> system_error(std::string_view what, int error) {
  const bool too_many = error == EMFILE || error == ENFILE;
  return fail(too_many ? ErrorCode::device : ErrorCode::internal, fmt::format("{}: {}", what, system_words(error)), {},
              too_many ? system_hint(error) : "");
}

}  // namespace accrue
