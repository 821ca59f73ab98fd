// SPDX-License-Identifier: Apache-2.0
// A program of several test classes, each in a file and a namespace of its own, which are compiled together: they share
// the headers of LibTorch or Qt. The first argument names the file: `PROGRAM test_models [function]`. A program of
// one class needs no name.
#pragma once

#include <QCoreApplication>
#include <QTest>

namespace accrue::test {

/// Runs a test class with the arguments of Qt Test.
using RunTests = int (*)(int argc, char** argv);

/// Enters a class into the program, under the name of its file.
struct TestFile {
  TestFile(const char* file, RunTests run);
};

}  // namespace accrue::test

/// Once in a test's file, in place of QTEST_GUILESS_MAIN.
#define ACCRUE_TEST_MAIN(TestClass)                                                   \
  static const accrue::test::TestFile test_file(__FILE__, [](int argc, char** argv) { \
    QCoreApplication application(argc, argv);                                         \
    TestClass tests;                                                                  \
    return QTest::qExec(&tests, argc, argv);                                          \
  });

/// In place of QTEST_MAIN, for a test that shows widgets.
#define ACCRUE_WINDOW_TEST_MAIN(TestClass)                                            \
  static const accrue::test::TestFile test_file(__FILE__, [](int argc, char** argv) { \
    QApplication application(argc, argv);                                             \
    application.setAttribute(Qt::AA_Use96Dpi, true);                                  \
    TestClass tests;                                                                  \
    return QTest::qExec(&tests, argc, argv);                                          \
  });
