// SPDX-License-Identifier: Apache-2.0
// other_megatron_args: the one schema of Megatron-LM's arguments that the plug-in takes beside its own fields. Each
// stands for a field, which it then overrides, for a key of a spec, or for what a program of one's own does; what none
// has is refused by name.
// Source: NVIDIA/Megatron-LM core 0.12.0, training/arguments.py; accelerate v1.13, the fields added since v1.9.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/findings.h"
#include "accrue/run/spec_fields.h"

namespace accrue {

/// One argument of Megatron-LM.
struct MegatronArgument {
  std::string_view name;  ///< as an attribute: "hidden_dropout"
  FieldType type = FieldType::integer;
  std::string_view field;  ///< the plug-in's field that it overrides; or empty
  std::string_view key;    ///< the key of a spec that it sets where it is no field; or empty
  std::string_view only;   ///< the values that do what Accrue does anyway: "false", "auto|unfused"; empty: any
  std::string_view why;    ///< with `only`: what is missing for any other value; of one that is neither field nor
                           ///< key nor has `only`: what it does in a program of one's own, and why nothing in a run
};

/// An argument that was given, with its value in the argument's type.
struct MegatronArgumentValue {
  const MegatronArgument* argument = nullptr;
  SpecValue value;
};

/// Megatron-LM's own values of the arguments that scale the losses of float16.
struct MegatronLossScale {
  static constexpr double initial_loss_scale = 4294967296.0;  ///< 2^32
  static constexpr double min_loss_scale = 1.0;
  static constexpr std::int64_t loss_scale_window = 1000;
  static constexpr std::int64_t hysteresis = 2;
};
/// Why loss_scale, a constant scale, cannot stand beside these arguments: the end of a sentence; empty where it can.
std::string constant_scale_conflict(std::span<const MegatronArgumentValue> arguments);

std::span<const MegatronArgument> megatron_arguments();
/// By its name as an attribute or as an option ("--hidden-dropout"); nullptr where there is none.
const MegatronArgument* find_megatron_argument(std::string_view name);

/// Reads "name = value" (values as TOML or Python spell them; a bare word is a string). An unknown name, a value of
/// another type, a name given twice and a value that is not offered are findings on megatron.other_megatron_args.
std::vector<MegatronArgumentValue> read_megatron_arguments(const std::vector<std::string>& assignments,
                                                           std::vector<Finding>& findings);

}  // namespace accrue
