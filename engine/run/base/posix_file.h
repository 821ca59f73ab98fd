// SPDX-License-Identifier: Apache-2.0
// File helpers of the run folder. Errors carry the path and the system's text; whole files appear atomically.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"
#include "accrue/run/base/sync_path.h"
#include "accrue/run/base/system_error.h"

namespace accrue {

/// Makes a disk error from the path and the system's text for errno.
tl::unexpected<Error> disk_error(const std::filesystem::path& path, std::string_view what, int error,
                                 FileUse use = FileUse::write);
/// Mode of a new file that others may read; the umask applies.
inline constexpr unsigned shared_mode = 0666;
/// Writes all bytes. Returns 0, or errno.
int write_all(int fd, std::string_view bytes);
/// Opens a regular file. Links, FIFOs and devices are errors; a plain open() of a FIFO would
/// wait for its peer. O_CLOEXEC is added.
Result<OwnedFd> open_regular(const std::filesystem::path& path, int flags, unsigned mode = 0600);
/// Whether another descriptor holds an flock on the file; false if there is none.
bool is_file_locked(const std::filesystem::path& path);
/// Writes a temporary file, syncs it and renames it: readers see either the old or the new text. `mode` applies to a
/// new file.
Result<void> write_file(const std::filesystem::path& path, std::string_view text, unsigned mode = 0600);
/// Name of the temporary file under which a file is written.
std::filesystem::path part_of(const std::filesystem::path& path);
/// Makes that file anew, to write to it. Errors: disk.
Result<OwnedFd> create_part(const std::filesystem::path& path, unsigned mode);
/// Closes the temporary file and gives it the name `path`. `error`: an errno of writing it, or 0. On an error the file
/// is removed.
Result<void> place_part(const std::filesystem::path& path, OwnedFd part, int error = 0);
/// Returns the folder as an absolute path without "." and "..". Errors (config): the name is empty, or there is no
/// current folder.
Result<std::filesystem::path> absolute_folder(const std::filesystem::path& folder);
/// Reads a text file of at most max_bytes.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes = 64 << 20);
/// Bytes that an ordinary user may still write on the disk of `path`; -1 if unknown.
std::int64_t free_bytes(const std::filesystem::path& path);

}  // namespace accrue
