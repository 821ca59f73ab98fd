// SPDX-License-Identifier: Apache-2.0
// The one form of byte counts, grouped digits and joined lists.
#include <QTest>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "accrue/run/base/number_text.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_number_text {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

class TestNumberText : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void bytes_have_the_largest_unit_that_they_reach_data() {
    const Rows<qint64, std::string> row;
    row("none", 0, "0 B");
    row("below a KiB", 1023, "1023 B");
    row("a KiB", 1024, "1.0 KiB");
    row("one decimal also of large numbers", qint64{434} << 20, "434.0 MiB");
    row("the last before 1024.0", (qint64{1} << 20) - 60, "1023.9 KiB");
    row("rounded up to the next unit", (qint64{1} << 20) - 1, "1.0 MiB");
    row("the largest unit", std::numeric_limits<qint64>::max(), "8388608.0 TiB");
  }
  void bytes_have_the_largest_unit_that_they_reach() {
    const auto [bytes, text] = current_row<qint64, std::string>();
    QCOMPARE(format_bytes(bytes), text);
    QCOMPARE(format_bytes(static_cast<double>(bytes)), text);
  }

  void digits_are_grouped_data() {
    const Rows<std::string, std::string> row;
    row("three", "999", "999");
    row("four", "1000", "1,000");
    row("six and a sign", "-123456", "-123,456");
    row("seven", "1234567", "1,234,567");
    row("a fraction stays", "12345.6789", "12,345.6789");
    row("nothing", "", "");
  }
  void digits_are_grouped() {
    const auto [number, text] = current_row<std::string, std::string>();
    QCOMPARE(grouped(number), text);
  }
  void a_separator_may_have_several_bytes() {
    QCOMPARE(grouped("1234567", "\u2009"), std::string("1\u2009234\u2009567"));
  }
  void the_smallest_whole_number_is_grouped() {
    QCOMPARE(grouped(std::numeric_limits<std::int64_t>::min()), std::string("-9,223,372,036,854,775,808"));
  }

  void lists_are_joined() {
    QCOMPARE(joined(std::vector<std::string>{}), std::string());
    QCOMPARE(joined(std::set<std::string>{"b", "a"}), std::string("a, b"));
    QCOMPARE(joined(std::vector<std::string>{"", "x", ""}, "; "), std::string("; x; "));
    QCOMPARE(joined(std::vector<std::int64_t>{-1, 20}, ","), std::string("-1,20"));
    QCOMPARE(joined(std::vector<int>{1, 2}, " and ", [](int rank) { return "rank " + std::to_string(rank); }),
             std::string("rank 1 and rank 2"));
    QCOMPARE(joined(std::vector<std::string>{"a", "bcd"}, " ", &std::string::size), std::string("1 3"));
  }
  void the_rest_of_a_long_list_is_counted() {
    const std::vector<std::string> list{"a", "b", "c"};
    QCOMPARE(joined_up_to(3, list), std::string("a, b, c"));
    QCOMPARE(joined_up_to(2, list), std::string("a, b and 1 more"));
  }
};

ACCRUE_TEST_MAIN(TestNumberText)

}  // namespace test_number_text
#include "test_number_text.moc"
