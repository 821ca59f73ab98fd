// SPDX-License-Identifier: Apache-2.0
// other_megatron_args: the schema of Megatron-LM's arguments that the plug-in accepts beside its own fields. Each
// stands for a field, which it then overrides, for a key of a spec, or for something a user's program does. Other
// arguments are refused by name.
// Source: NVIDIA/Megatron-LM core 0.12.0, training/arguments.py; accelerate v1.13, the fields added since v1.9.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec_fields.h"

namespace accrue {

/// One argument of Megatron-LM.
struct MegatronArgument {
  std::string_view name;  ///< as an attribute: "hidden_dropout"
  FieldType type = FieldType::integer;
  std::string_view field;   ///< field of the plug-in that it overrides; may be empty
  std::string_view key;     ///< key of a spec that it sets if it is not a field; may be empty
  std::string_view only;    ///< values that match Accrue's only behaviour: "false", "auto|unfused"; empty: any
  std::string_view why;     ///< with `only`: what is missing for other values; for an argument without field,
                            ///< key and `only`: its effect in a user's program, and why it has none in a run
  bool in_program = false;  ///< of one without field and `only`: whether an Accelerator of a user's program reads it
};

/// A given argument, with its value in the argument's type.
struct MegatronArgumentValue {
  const MegatronArgument* argument = nullptr;
  SpecValue value;
};

/// Megatron-LM's defaults of the arguments for float16 loss scaling.
struct MegatronLossScale {
  static constexpr double initial_loss_scale = 4294967296.0;  ///< 2^32
  static constexpr double min_loss_scale = 1.0;
  static constexpr std::int64_t loss_scale_window = 1000;
  static constexpr std::int64_t hysteresis = 2;
};
/// Returns why loss_scale, a constant scale, conflicts with these arguments, as the end of a sentence; empty if it does
/// not.
std::string constant_scale_conflict(std::span<const MegatronArgumentValue> arguments);

std::span<const MegatronArgument> megatron_arguments();
/// Finds an argument by its attribute or option name ("--hidden-dropout"); nullptr if there is none.
const MegatronArgument* find_megatron_argument(std::string_view name);

/// Reads "name = value" (values in TOML or Python spelling; a bare word is a string). An unknown name, a value of
/// another type, a duplicate name and an unsupported value are findings on megatron.other_megatron_args.
std::vector<MegatronArgumentValue> read_megatron_arguments(const std::vector<std::string>& assignments,
                                                           std::vector<Finding>& findings);

}  // namespace accrue
