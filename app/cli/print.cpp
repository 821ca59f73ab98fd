// SPDX-License-Identifier: Apache-2.0
#include "print.h"

#include <unistd.h>

#include <cstdarg>
#include <string>

#include "accrue/run/base/printable.h"

namespace accrue::cli {
namespace {

[[gnu::format(printf, 1, 0)]] std::string formatted(const char* format, std::va_list values) {
  std::va_list again;
  va_copy(again, values);
  const int size = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string text(size < 0 ? 0 : static_cast<std::size_t>(size), '\0');
  if (size > 0) std::vsnprintf(text.data(), text.size() + 1, format, values);
  return text;
}

}  // namespace

void put(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  put(formatted(format, values));
  va_end(values);
}

void put(const std::string& text) {
  pass_on(stdout, printable(text));
}

void say(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  say(formatted(format, values));
  va_end(values);
}

void say(const std::string& text) {
  pass_on(stderr, printable(text));
}

void put_data(std::string_view text) {
  const std::string shown = ::isatty(STDOUT_FILENO) != 0 ? printable(text) : std::string();
  pass_on(stdout, shown.empty() ? text : shown);
}

void draw_line(std::string_view text) {
  std::fprintf(stderr, "\r\033[K%s", printable(text).c_str());
  std::fflush(stderr);
}

void pass_on(std::FILE* to, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), to);
}

}  // namespace accrue::cli
