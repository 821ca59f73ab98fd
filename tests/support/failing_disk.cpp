// SPDX-License-Identifier: Apache-2.0
// A disk that fails once, to be preloaded into a program or linked into one. Of the file calls that concern a path
// which contains FAILING_DISK_PATH and that can fail as FAILING_DISK_HOW says, the FAILING_DISK_CALL-th does:
//   ENOSPC, EIO, EMFILE   it returns that error and changes nothing (a close closes all the same)
//   FULL                  it and every later one return ENOSPC
//   KILL                  the process is killed in its place
// Each such call adds a line to FAILING_DISK_LOG: its name and its path. FAILING_DISK_EXCHANGE=none makes it a disk
// that can exchange no two names, as over NFS.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

enum Kind { opens, creates, makes, writes, syncs, renames, removes, closes };

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns the error of such a call on this disk; 0 if it cannot fail this way.
int error_of(Kind kind) {
  const char* how = setting("FAILING_DISK_HOW");
  if (std::strcmp(how, "EMFILE") == 0) return kind == opens || kind == creates ? EMFILE : 0;
  if (std::strcmp(how, "EIO") == 0 || std::strcmp(how, "KILL") == 0) return EIO;
  const bool needs_space = kind == creates || kind == makes || kind == writes || kind == syncs || kind == renames;
  const bool once = std::strcmp(how, "ENOSPC") == 0;
  return needs_space || (once && kind == closes) ? ENOSPC : 0;
}

/// Writes nothing that is counted.
void note(const char* call, const char* path) {
  static const int log = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, setting("FAILING_DISK_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  char line[PATH_MAX + 64];
  const int length = std::snprintf(line, sizeof line, "%s %s\n", call, path);
  if (log >= 0 && length > 0) ::syscall(SYS_write, log, line, static_cast<std::size_t>(length));
}

/// Whether this call is the one; errno says how it fails.
bool fails(Kind kind, const char* call, const char* path) {
  static std::atomic<long> calls{0};
  const char* const wanted = setting("FAILING_DISK_PATH");
  const int error = error_of(kind);
  if (error == 0 || *wanted == '\0' || std::strstr(path, wanted) == nullptr) return false;
  const int before = errno;
  note(call, path);
  const long number = ++calls;
  const long first = std::atol(setting("FAILING_DISK_CALL"));
  const char* const how = setting("FAILING_DISK_HOW");
  const bool lasts = std::strcmp(how, "FULL") == 0 && first > 0;
  errno = before;
  if (number != first && !(lasts && number > first)) return false;
  if (std::strcmp(how, "KILL") == 0) ::kill(::getpid(), SIGKILL);
  errno = error;
  return true;
}

/// The same for what a descriptor leads to.
bool fails(Kind kind, const char* call, int fd) {
  const int before = errno;
  char link[64];
  char path[PATH_MAX] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const auto length = ::syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  errno = before;
  return length > 0 && fails(kind, call, path);
}

/// The same for a path that begins at a folder's descriptor.
bool fails(Kind kind, const char* call, int folder, const char* path) {
  if (folder == AT_FDCWD || path[0] == '/') return fails(kind, call, path);
  return fails(kind, call, folder);
}

Kind kind_of_open(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? creates : opens;
}

const char* name_of_open(int flags) {
  return kind_of_open(flags) == creates ? "create" : "open";
}

}  // namespace

#define MODE_OF(flags)                                              \
  mode_t mode = 0;                                                  \
  if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    mode = va_arg(more, mode_t);                                    \
    va_end(more);                                                   \
  }

#define INTERPOSE_OPEN(name)                                              \
  EXPORTED int name(const char* path, int flags, ...) {                   \
    MODE_OF(flags)                                                        \
    if (fails(kind_of_open(flags), name_of_open(flags), path)) return -1; \
    return real<int(const char*, int, ...)>(#name)(path, flags, mode);    \
  }
INTERPOSE_OPEN(open)
INTERPOSE_OPEN(open64)

#define INTERPOSE_OPENAT(name)                                                      \
  EXPORTED int name(int folder, const char* path, int flags, ...) {                 \
    MODE_OF(flags)                                                                  \
    if (fails(kind_of_open(flags), name_of_open(flags), folder, path)) return -1;   \
    return real<int(int, const char*, int, ...)>(#name)(folder, path, flags, mode); \
  }
INTERPOSE_OPENAT(openat)
INTERPOSE_OPENAT(openat64)

EXPORTED DIR* opendir(const char* path) {
  if (fails(opens, "opendir", path)) return nullptr;
  return real<DIR*(const char*)>("opendir")(path);
}

EXPORTED ssize_t write(int fd, const void* bytes, size_t size) {
  if (fails(writes, "write", fd)) return -1;
  return real<ssize_t(int, const void*, size_t)>("write")(fd, bytes, size);
}

#define INTERPOSE_PWRITE(name)                                                         \
  EXPORTED ssize_t name(int fd, const void* bytes, size_t size, off_t at) {            \
    if (fails(writes, "pwrite", fd)) return -1;                                        \
    return real<ssize_t(int, const void*, size_t, off_t)>(#name)(fd, bytes, size, at); \
  }
INTERPOSE_PWRITE(pwrite)
INTERPOSE_PWRITE(pwrite64)

EXPORTED int fsync(int fd) {
  if (fails(syncs, "fsync", fd)) return -1;
  return real<int(int)>("fsync")(fd);
}

EXPORTED int fdatasync(int fd) {
  if (fails(syncs, "fdatasync", fd)) return -1;
  return real<int(int)>("fdatasync")(fd);
}

EXPORTED int rename(const char* from, const char* to) {
  if (fails(renames, "rename", from)) return -1;
  return real<int(const char*, const char*)>("rename")(from, to);
}

EXPORTED int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  if (fails(renames, "renameat", from_folder, from)) return -1;
  return real<int(int, const char*, int, const char*)>("renameat")(from_folder, from, to_folder, to);
}

EXPORTED int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (flags != 0 && std::strcmp(setting("FAILING_DISK_EXCHANGE"), "none") == 0) {
    errno = EINVAL;
    return -1;
  }
  if (fails(renames, "renameat2", from_folder, from)) return -1;
  return real<int(int, const char*, int, const char*, unsigned)>("renameat2")(from_folder, from, to_folder, to, flags);
}

EXPORTED int mkdir(const char* path, mode_t mode) {
  if (fails(makes, "mkdir", path)) return -1;
  return real<int(const char*, mode_t)>("mkdir")(path, mode);
}

EXPORTED int link(const char* from, const char* to) {
  if (fails(makes, "link", to)) return -1;
  return real<int(const char*, const char*)>("link")(from, to);
}

EXPORTED int unlink(const char* path) {
  if (fails(removes, "unlink", path)) return -1;
  return real<int(const char*)>("unlink")(path);
}

EXPORTED int unlinkat(int folder, const char* path, int flags) {
  if (fails(removes, "unlinkat", folder, path)) return -1;
  return real<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}

EXPORTED int rmdir(const char* path) {
  if (fails(removes, "rmdir", path)) return -1;
  return real<int(const char*)>("rmdir")(path);
}

EXPORTED int remove(const char* path) {
  if (fails(removes, "remove", path)) return -1;
  return real<int(const char*)>("remove")(path);
}

#define INTERPOSE_FTRUNCATE(name)                   \
  EXPORTED int name(int fd, off_t size) {           \
    if (fails(removes, "ftruncate", fd)) return -1; \
    return real<int(int, off_t)>(#name)(fd, size);  \
  }
INTERPOSE_FTRUNCATE(ftruncate)
INTERPOSE_FTRUNCATE(ftruncate64)

#define INTERPOSE_FALLOCATE(name)                                        \
  EXPORTED int name(int fd, int mode, off_t at, off_t size) {            \
    if (fails(writes, "fallocate", fd)) return -1;                       \
    return real<int(int, int, off_t, off_t)>(#name)(fd, mode, at, size); \
  }
INTERPOSE_FALLOCATE(fallocate)
INTERPOSE_FALLOCATE(fallocate64)

/// The descriptor is gone either way, as Linux has it.
EXPORTED int close(int fd) {
  const bool failed = fails(closes, "close", fd);
  const int error = errno;
  const int closed = real<int(int)>("close")(fd);
  if (!failed) return closed;
  errno = error;
  return -1;
}
