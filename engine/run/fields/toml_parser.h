// SPDX-License-Identifier: Apache-2.0
// toml++ as this project uses it: declarations. The parser itself is compiled once, in spec_reader.cpp.
#pragma once

#define TOML_HEADER_ONLY 0
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
