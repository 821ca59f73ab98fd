// SPDX-License-Identifier: Apache-2.0
// All that accrue-run writes to its standard streams. What is for people has no control character from a file in it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace accrue::cli {

/// To standard output, for people.
[[gnu::format(printf, 1, 2)]] void put(const char* format, ...);
void put(const std::string& text);
/// To standard error, for people.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
void say(const std::string& text);
/// To standard output, for programs: byte by byte, unless a terminal shows it.
void put_data(std::string_view text);
/// On standard error, in place of the line that stands there. A newline ends it.
void draw_line(std::string_view text);
/// What a program of the user's wrote, as it is.
void pass_on(std::FILE* to, std::string_view text);

}  // namespace accrue::cli
