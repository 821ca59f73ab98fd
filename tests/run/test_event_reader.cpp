// SPDX-License-Identifier: Apache-2.0

#include <sys/stat.h>

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "accrue/run/events/event_codec.h"
#include "accrue/run/events/event_reader.h"
#include "support/test_program.h"

namespace test_event_reader {

using namespace accrue;

namespace {

std::string line(std::int64_t rank, std::int64_t seq) {
  return encode_event({rank, seq, seq, Evaluation{seq, 0.5, 1, 1}}) + "\n";
}

std::filesystem::path file_in(const QTemporaryDir& dir) {
  return std::filesystem::path(dir.path().toStdString()) / "events.jsonl";
}

}  // namespace

class TestEventReader : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void pieces_of_any_size_give_the_same_events() {
    std::string text;
    for (int i = 0; i < 20; ++i) text += line(i % 3, i / 3);
    EventReader whole;
    const auto expected = whole.feed(text);
    QCOMPARE(expected.size(), std::size_t{20});
    for (std::size_t size = 1; size < 200; size += 7) {
      EventReader reader;
      std::vector<RunEvent> events;
      for (std::size_t at = 0; at < text.size(); at += size)
        for (auto& event : reader.feed(std::string_view(text).substr(at, size))) events.push_back(std::move(event));
      QVERIFY(events == expected);
      QVERIFY(reader.problems() == ReadProblems{});
    }
  }

  void a_damaged_line_is_skipped_and_counted() {
    EventReader reader;
    const auto events = reader.feed(line(0, 0) + "{\"v\":2,\"kind\":\n" + line(0, 1));
    QCOMPARE(events.size(), std::size_t{2});
    QCOMPARE(reader.problems().unreadable_lines, 1);
    QVERIFY(!reader.problems().first_message.empty());
    QCOMPARE(reader.problems().missing_events, 0);
  }

  void a_jump_in_the_numbering_is_counted_per_rank() {
    EventReader reader;
    reader.feed(line(0, 0) + line(1, 0) + line(0, 4) + line(1, 1));
    QCOMPARE(reader.problems().missing_events, 3);
    QCOMPARE(reader.next_seq().at(0), 5);
    QCOMPARE(reader.next_seq().at(1), 2);
  }

  void a_channel_may_start_in_the_middle() {
    EventReader reader;
    reader.expect(0, 50);
    reader.feed(line(0, 50) + line(0, 51));
    QCOMPARE(reader.problems().missing_events, 0);
    QCOMPARE(reader.next_seq().at(0), 52);
  }

  void a_torn_last_line_is_no_event() {
    EventReader reader;
    const std::string text = line(0, 0) + line(0, 1);
    const auto events = reader.feed(std::string_view(text).substr(0, text.size() - 5));
    QCOMPARE(events.size(), std::size_t{1});
    QVERIFY(!reader.problems().torn_last_line);
    reader.finish();
    QVERIFY(reader.problems().torn_last_line);
  }

  void an_overlong_line_is_skipped_whole_without_keeping_it() {
    EventReader reader;
    std::vector<RunEvent> events = reader.feed(line(0, 0));
    const std::string piece(1 << 16, 'x');
    for (int i = 0; i < 64; ++i) QVERIFY(reader.feed(piece).empty());
    const auto rest = reader.feed("tail\n" + line(0, 1));
    QCOMPARE(rest.size(), std::size_t{1});
    QCOMPARE(reader.problems().unreadable_lines, 1);
  }

  void a_growing_file_is_followed() {
    QTemporaryDir dir;
    std::ofstream out(file_in(dir), std::ios::app);
    auto file = EventFile::open(file_in(dir));
    QVERIFY(file.has_value());
    QVERIFY(file->poll().empty());
    QVERIFY(file->at_end());
    const std::string second = line(0, 1);
    out << line(0, 0) << second.substr(0, 10) << std::flush;
    QCOMPARE(file->poll().size(), std::size_t{1});
    QVERIFY(file->poll().empty());
    out << second.substr(10) << line(0, 2) << std::flush;
    QCOMPARE(file->poll().size(), std::size_t{2});
    QVERIFY(file->problems() == ReadProblems{});
  }

  void a_large_file_is_read_in_slices() {
    QTemporaryDir dir;
    std::ofstream out(file_in(dir));
    for (int i = 0; i < 5000; ++i) out << line(0, i);
    out.close();
    auto file = EventFile::open(file_in(dir));
    std::size_t count = 0;
    int slices = 0;
    do {
      count += file->poll(10000).size();
      ++slices;
    } while (!file->at_end());
    QCOMPARE(count, std::size_t{5000});
    QVERIFY(slices > 10);
  }

  void a_whole_history_tells_its_problems() {
    QTemporaryDir dir;
    std::ofstream(file_in(dir)) << line(0, 0) << "garbage\n" << line(0, 3) << line(0, 4).substr(0, 20);
    const auto history = read_events(file_in(dir));
    QVERIFY(history.has_value());
    QCOMPARE(history->events.size(), std::size_t{2});
    QCOMPARE(history->problems.unreadable_lines, 1);
    QCOMPARE(history->problems.missing_events, 2);
    QVERIFY(history->problems.torn_last_line);
  }

  void lines_are_handed_on_as_they_came() {
    // Fields of a later writer, spaces and pieces: what is passed on is the line, not what this program knows of it.
    const std::string foreign =
        R"({"v": 2, "kind": "evaluation", "rank": 1, "seq": 0, "time_ns": 7, "update": 3, "loss": 2.0, "batches": 1, "tokens": 9, "mood": "good"})";
    const std::string text = foreign + "\r\ngarbage\n" + line(0, 0);
    EventReader reader;
    std::vector<ReceivedEvent> received;
    for (std::size_t at = 0; at < text.size(); at += 11)
      for (auto& each : reader.feed_lines(std::string_view(text).substr(at, 11))) received.push_back(std::move(each));
    QCOMPARE(received.size(), std::size_t{2});
    QCOMPARE(received[0].line, foreign);
    QCOMPARE(std::get<Evaluation>(received[0].event.body).update, 3);
    QCOMPARE(received[1].line + "\n", line(0, 0));
  }

  void a_file_of_another_version_is_refused_with_the_reason() {
    QTemporaryDir dir;
    const std::string old = "{\"v\":" + std::to_string(event_format_version - 1) + ",\"kind\":\"update\"}\n";
    std::ofstream(file_in(dir)) << old << old;
    const auto history = read_events(file_in(dir));
    QVERIFY(!history.has_value());
    QCOMPARE(history.error().code, ErrorCode::protocol);
    for (const int version : {event_format_version - 1, event_format_version})
      QVERIFY(history.error().message.find("version " + std::to_string(version)) != std::string::npos);
    QVERIFY(history.error().text().find("events.jsonl") != std::string::npos);
  }

  void numbers_that_would_overflow_make_a_line_unreadable() {
    EventReader reader;
    const std::string head = R"({"v":)" + std::to_string(event_format_version) + R"(,"kind":"warning","rank":0,"seq":)";
    const std::string tail = R"(,"class":"data","message":"m"})";
    const auto number = [&](const std::string& seq, const std::string& time) {
      return reader.feed(head + seq + ",\"time_ns\":" + time + tail + "\n").size();
    };
    QCOMPARE(number("0", "9223372036854775807"), std::size_t{0});
    QCOMPARE(number("9223372036854775807", "5"), std::size_t{0});
    QCOMPARE(reader.problems().unreadable_lines, 2);
    QCOMPARE(number("0", "5"), std::size_t{1});
    QCOMPARE(reader.next_seq().at(0), 1);
  }

  void a_fifo_in_the_place_of_events_is_an_error_at_once() {
    QTemporaryDir dir;
    const auto file = file_in(dir);
    QCOMPARE(::mkfifo(file.c_str(), 0600), 0);
    const auto opened = EventFile::open(file);
    QVERIFY(!opened.has_value());
    QVERIFY(opened.error().text().find("not a regular file") != std::string::npos);
  }

  void a_missing_file_is_an_error_with_its_path() {
    const auto file = EventFile::open("/nowhere/events.jsonl");
    QVERIFY(!file.has_value());
    QVERIFY(file.error().text().find("/nowhere/events.jsonl") != std::string::npos);
  }

  void decoding_and_appending_keep_up_with_20000_events_a_second() {
    std::string text;
    constexpr int count = 20000;
    for (int i = 0; i < count; ++i)
      text += encode_event(
                  {0, i, i,
                   MicroSteps{{i}, {i}, {1}, {1}, {0}, {i}, {5.4321 / (i + 1)}, {512}, {4}, {i * 1000}, {35801}}}) +
              "\n";
    EventReader reader;
    QElapsedTimer timer;
    timer.start();
    std::size_t bytes = 0;
    for (const auto& event : reader.feed(text)) bytes += encode_event(event).size() + 1;
    const auto ms = timer.elapsed();
    qInfo("decoded and encoded %d events (%zu bytes) in %lld ms", count, bytes, static_cast<long long>(ms));
    QCOMPARE(bytes, text.size());
    // A tenth of it is usual; the bound leaves room for sanitizers and a loaded machine.
    QVERIFY2(ms < 5000, "slower than any build should be");
  }
};

ACCRUE_TEST_MAIN(TestEventReader)

}  // namespace test_event_reader
#include "test_event_reader.moc"
