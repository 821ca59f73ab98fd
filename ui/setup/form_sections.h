// SPDX-License-Identifier: GPL-3.0-or-later
// The sections of the set-up form: one a table of the spec's file, and for the Megatron-LM plug-in one a group of its
// fields.
#pragma once

#include <QString>
#include <string_view>

#include "accrue/run/fields/spec_fields.h"

namespace accrue::ui {

/// "accumulation", "megatron.layout".
std::string_view sectionOf(const SpecField& field);
QString sectionTitle(std::string_view section);
/// Returns the section's place; settings that users change most often come first.
int sectionOrder(std::string_view section);

}  // namespace accrue::ui
