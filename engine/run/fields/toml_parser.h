// SPDX-License-Identifier: Apache-2.0
// Declarations of toml++ for this project. spec_reader.cpp compiles the parser itself, once.
#pragma once

#define TOML_HEADER_ONLY 0
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
