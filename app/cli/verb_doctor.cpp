// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "accrue/run/base/counted.h"
#include "doctor_checks.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

void print_json(const std::vector<DoctorCheck>& checks, int problems) {
  nlohmann::ordered_json json;
  json["problems"] = problems;
  json["checks"] = nlohmann::ordered_json::array();
  for (const auto& check : checks) {
    nlohmann::ordered_json entry{{"name", check.name}, {"ok", check.ok}, {"found", check.found}};
    if (!check.ok) entry["fix"] = check.fix;
    json["checks"].push_back(std::move(entry));
  }
  put_data(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print_text(const std::vector<DoctorCheck>& checks, int problems) {
  for (const auto& check : checks) {
    put("%-8s %-22s %s\n", check.ok ? "ok" : "PROBLEM", check.name.c_str(), check.found.c_str());
    if (!check.ok) put("%-8s %-22s %s\n", "", "", check.fix.c_str());
  }
  put("%s\n", counted(problems, "problem").c_str());
}

}  // namespace

int check_installation(const DoctorOptions& options) {
  const auto checks = run_doctor_checks();
  const auto problems = static_cast<int>(std::ranges::count(checks, false, &DoctorCheck::ok));
  if (options.json)
    print_json(checks, problems);
  else
    print_text(checks, problems);
  return problems;
}

}  // namespace accrue::cli
