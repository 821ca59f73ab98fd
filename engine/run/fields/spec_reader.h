// SPDX-License-Identifier: Apache-2.0
// Reader without the size limit, for texts that this program wrote itself (plan.json).
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "accrue/run/fields/spec_io.h"

namespace accrue::spec_detail {

SpecReading parse_spec_text(std::string_view toml, std::string file_name, std::size_t max_bytes);

}  // namespace accrue::spec_detail
