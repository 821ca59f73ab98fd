// SPDX-License-Identifier: Apache-2.0
// Code that reads the ordinary keys that the plug-in's fields set.
#pragma once

#include <span>
#include <string_view>

namespace accrue::megatron_detail {

struct Consumer {
  std::string_view keys;  ///< a key, or a section with its dot
  std::string_view file;  ///< without its suffix: "engine/train/boundary"
};

/// The first entry that matches a key applies.
std::span<const Consumer> consumers();
std::string_view consumer_of(std::string_view key);

}  // namespace accrue::megatron_detail
