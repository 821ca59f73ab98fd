// SPDX-License-Identifier: Apache-2.0
// Requirements of runs on this machine.
#pragma once

#include <string>
#include <vector>

namespace accrue::cli {

struct DoctorCheck {
  std::string name;
  bool ok = true;
  std::string found;
  std::string fix;  ///< advice if it is not ok
};

std::vector<DoctorCheck> run_doctor_checks();

}  // namespace accrue::cli
