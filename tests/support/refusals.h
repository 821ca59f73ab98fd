// SPDX-License-Identifier: Apache-2.0
// The messages of calls that refuse, and of results that are errors.
#pragma once

#include <QString>
#include <stdexcept>
#include <string>
#include <utility>

namespace accrue::test {

/// The text of what `call` throws; empty if it returns.
template <typename Thrown, typename Call>
QString thrown_by(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Thrown& error) {
    return QString::fromUtf8(error.what());
  }
  return {};
}

/// The same for a call that refuses its argument.
template <typename Call>
std::string refused(Call&& call) {
  return thrown_by<std::invalid_argument>(std::forward<Call>(call)).toStdString();
}

/// The same of any failure.
template <typename Call>
std::string error_of(Call&& call) {
  return thrown_by<std::exception>(std::forward<Call>(call)).toStdString();
}

/// Fails the test function unless a Result is an error of this class whose text has these words.
#define VERIFY_FAILS(result, error_code, words)                                                        \
  do {                                                                                                 \
    QVERIFY(!(result));                                                                                \
    QCOMPARE((result).error().code, error_code);                                                       \
    QVERIFY2(accrue::test::contains((result).error().text(), words), (result).error().text().c_str()); \
  } while (false)

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace accrue::test
