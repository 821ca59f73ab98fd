// SPDX-License-Identifier: Apache-2.0
// File helpers of the run folder: errors with the path and the system's words, whole files that appear at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "accrue/run/result.h"
#include "accrue/run/sync_path.h"
#include "accrue/run/system_error.h"

namespace accrue {

/// A disk error that names the path and what the system said (errno).
tl::unexpected<Error> disk_error(const std::filesystem::path& path, std::string_view what, int error,
                                 FileUse use = FileUse::write);
/// Of a new file that others may have, as other programs make theirs: the umask decides.
inline constexpr unsigned shared_mode = 0666;
/// Writes all bytes or answers errno; 0 = done.
int write_all(int fd, std::string_view bytes);
/// Opens a file that must be a regular one, never through a link: a FIFO or a device in its place is an error at once,
/// where an ordinary open would wait for a peer. O_CLOEXEC is added. Answers the descriptor.
Result<int> open_regular(const std::filesystem::path& path, int flags, unsigned mode = 0600);
/// Writes beside the file, syncs and renames: readers see the old text or the new one. `mode`: of the new file.
Result<void> write_file(const std::filesystem::path& path, std::string_view text, unsigned mode = 0600);
/// Name of the file that write_file() writes first.
std::filesystem::path part_of(const std::filesystem::path& path);
/// The folder as an absolute path without "." and "..". Errors (config): none is named, or there is no current folder.
Result<std::filesystem::path> absolute_folder(const std::filesystem::path& folder);
/// A text file of at most max_bytes.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes = 64 << 20);
/// Bytes an ordinary user may still write on the disk that holds path; -1 where that is not known.
std::int64_t free_bytes(const std::filesystem::path& path);
/// "12.3 MiB"
std::string format_bytes(std::int64_t bytes);

}  // namespace accrue
