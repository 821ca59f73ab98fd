// SPDX-License-Identifier: Apache-2.0
// All output of accrue-run to its standard streams. Text for people contains no control character from a file.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace accrue::cli {

/// Writes to standard output, for people.
[[gnu::format(printf, 1, 2)]] void put(const char* format, ...);
void put(const std::string& text);
/// Writes to standard error, for people.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
void say(const std::string& text);
/// Writes to standard output, for programs: byte by byte, unless it is a terminal.
void put_data(std::string_view text);
/// Replaces the current line on standard error. A newline ends it.
void draw_line(std::string_view text);
/// Writes the output of a user's program unchanged.
void pass_on(std::FILE* to, std::string_view text);

}  // namespace accrue::cli
