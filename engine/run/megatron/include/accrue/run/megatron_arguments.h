// SPDX-License-Identifier: Apache-2.0
// other_megatron_args: the one schema of Megatron-LM's arguments that the plug-in takes beside its own fields. Each
// stands for a field, which it then overrides, or for a key of a spec; what neither has is refused by name.
// Source: NVIDIA/Megatron-LM core 0.12.0, training/arguments.py; accelerate v1.13, the fields added since v1.9.
#pragma once

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
  std::string_view why;    ///< of an argument with `only`: what is missing for any other value
};

/// An argument that was given, with its value in the argument's type.
struct MegatronArgumentValue {
  const MegatronArgument* argument = nullptr;
  SpecValue value;
};

std::span<const MegatronArgument> megatron_arguments();
/// By its name as an attribute or as an option ("--hidden-dropout"); nullptr where there is none.
const MegatronArgument* find_megatron_argument(std::string_view name);

/// Reads "name = value" (values as TOML or Python spell them; a bare word is a string). An unknown name, a value of
/// another type, a name given twice and a value that is not offered are findings on megatron.other_megatron_args.
std::vector<MegatronArgumentValue> read_megatron_arguments(const std::vector<std::string>& assignments,
                                                           std::vector<Finding>& findings);

}  // namespace accrue
