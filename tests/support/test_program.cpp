// SPDX-License-Identifier: Apache-2.0
#include "support/test_program.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

namespace {

std::map<std::string, accrue::test::RunTests>& test_files() {
  static std::map<std::string, accrue::test::RunTests> files;
  return files;
}

}  // namespace

accrue::test::TestFile::TestFile(const char* file, RunTests run) {
  test_files().emplace(std::filesystem::path(file).stem().string(), run);
}

int main(int argc, char** argv) {
  const auto& files = test_files();
  if (files.size() == 1) return files.begin()->second(argc, argv);
  const auto named = argc > 1 ? files.find(argv[1]) : files.end();
  if (named == files.end()) {
    std::fprintf(stderr, "usage: %s TEST [function], where TEST is one of:\n", argv[0]);
    for (const auto& [name, run] : files) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  argv[1] = argv[0];
  return named->second(argc - 1, argv + 1);
}
