// SPDX-License-Identifier: Apache-2.0
// Number of damaged inputs that a test makes: few in the suite; `PROGRAM TEST --inputs 100000 [function]` sets it for
// each kind.
#pragma once

#include <QCoreApplication>
#include <QTest>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/test_program.h"

namespace accrue::test {

inline int fuzz_inputs = 5'000;

/// The main function of such a test; it takes its own argument from the front of Qt's.
template <typename Test>
int run_with_inputs(int argc, char** argv) {
  const QCoreApplication application(argc, argv);
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (i + 1 < argc && std::strcmp(argv[i], "--inputs") == 0)
      fuzz_inputs = std::atoi(argv[++i]);
    else
      rest.push_back(argv[i]);
  }
  if (fuzz_inputs > 5'000) qputenv("QTEST_FUNCTION_TIMEOUT", "3600000");
  Test tests;
  return QTest::qExec(&tests, static_cast<int>(rest.size()), rest.data());
}

}  // namespace accrue::test

/// Once in the file of such a test.
#define ACCRUE_FUZZ_TEST_MAIN(TestClass) \
  static const accrue::test::TestFile test_file(__FILE__, &accrue::test::run_with_inputs<TestClass>);
