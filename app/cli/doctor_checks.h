// SPDX-License-Identifier: Apache-2.0
// What must be right for runs to work on this machine.
#pragma once

#include <string>
#include <vector>

namespace accrue::cli {

struct DoctorCheck {
  std::string name;
  bool ok = true;
  std::string found;
  std::string fix;  ///< what to do where it is not ok
};

std::vector<DoctorCheck> run_doctor_checks();

}  // namespace accrue::cli
