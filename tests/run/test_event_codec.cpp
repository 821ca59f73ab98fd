// SPDX-License-Identifier: Apache-2.0
#include <QTest>
#include <cmath>
#include <limits>

#include "accrue/run/events/event_codec.h"
#include "accrue/run/events/rank_command.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_event_codec {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

RunEvent make(EventBody body, std::int64_t rank = 0, std::int64_t seq = 7) {
  return {rank, is_stored(body) ? seq : -1, 123456789, std::move(body)};
}

/// One of every kind, with every field away from its default.
std::vector<RunEvent> one_of_each() {
  return {
      make(RunStarted{"id", "abc", R"({"a":1})", R"({"accrue":"0.1.0"})", R"({"cores":2})", "2026-11-21T00:00:00Z",
                      true, 100},
           supervisor_rank),
      make(RankReady{1, 2, 3, "cpu", 4711, "shm", 2, "AVX2", "kernels", "tiles"}),
      make(MicroSteps{{1, 2}, {1, 1}, {1, 2}, {2, 2}, {0, 0}, {0, 1}, {5.5, 5.25}, {64, 64}, {4, 4}, {10, 20}, {3, 3}}),
      make(Operations{{ComputeKind::forward, ComputeKind::backward, ComputeKind::step},
                      {1, 1, 1},
                      {0, 0, 0},
                      {10, 13, 16},
                      {13, 16, 17}}),
      make(Sync{{1}, {4}, {"data"}, {"all_reduce"}, {CollectivePurpose::check}, {1024}, {30}, {40}}),
      make(Update{3,
                  12,
                  96,
                  768,
                  0.5,
                  1.0 / 3.0,
                  3e-4,
                  0.75,
                  StepOutcome::skipped_overflow,
                  1.5,
                  1.25,
                  "full",
                  4,
                  2,
                  {1.0, -2.5},
                  {{"lm loss", 0.25}, {"sop loss", 1.0 / 12.0}},
                  65536.0,
                  0.125,
                  12.5,
                  7}),
      make(Evaluation{50, 2.125, 8, 4096, {{"lm loss", 1.5}, {"sop loss", 0.625}}}),
      make(ExactnessCheck{7, 1e-9, 0.25, 0.5, 0.75, 1e-5, "not", "tail_policy", "because", 4, 1, 0.125}),
      make(StepsChanged{12, 48, 8}),
      make(CheckpointDone{100, "checkpoints/step-100", 1 << 20, 0.03}),
      make(CheckpointDone{100, "checkpoints/step-100", 1 << 20, 0.03, 2.31}),
      make(Gauge{1, 2, 5, 6}),
      make(Heartbeat{"reduce", 3, 12, 9}),
      make(Holding{12, true}),
      make(Holding{12, true, StepPhase::backward}),
      make(Held{3, 12, StepPhase::reduce, 4, 4, 0.5, 0.25, 0.82, 1.0, 0.6, 0.02, 0.01, "0.weight", 24, {0.1}, {0.3}}),
      make(StateChanged{"paused", "Paused at micro 2 of 4, update 3", 10, 2}, supervisor_rank),
      make(Warning{"numerics", "NaN \"here\"\n\tand there", "lower lr", 4}),
      make(RankFailed{"peer_lost", "Rank 1 was killed", "resume", "reduce", 9, 4, "tail \xc3\xa9", 3, 12}),
      make(RunFinished{"stopped", 10, 0.5, "ffff", "Stopped by you", 130, 12.5}, supervisor_rank),
  };
}

}  // namespace

class TestEventCodec : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_kind_reads_back_as_written() {
    for (const auto& written : one_of_each()) {
      const std::string line = encode_event(written);
      QVERIFY2(line.find('\n') == std::string::npos, line.c_str());
      const auto read = decode_event(line);
      QVERIFY2(read.has_value(), (line + " " + (read ? "" : read.error().text())).c_str());
      QVERIFY2(*read == written, line.c_str());
    }
  }

  void the_header_is_spelt_as_the_contract_says() {
    const auto line = encode_event(make(Evaluation{1, 2.0, 3, 4}, 1, 5));
    QCOMPARE(QString::fromStdString(line),
             QStringLiteral(R"({"v":2,"kind":"evaluation","rank":1,"seq":5,"time_ns":123456789,"update":1,"loss":2,)"
                            R"("batches":3,"tokens":4})"));
  }

  void a_sync_line_of_an_earlier_version_does_not_say_what_its_calls_are_for() {
    const std::string line = encode_event(make(Sync{{1, 1},
                                                    {4, 4},
                                                    {"data", "data"},
                                                    {"all_reduce", "all_gather"},
                                                    {CollectivePurpose::gradients, CollectivePurpose::agreement},
                                                    {8, 8},
                                                    {1, 3},
                                                    {2, 4}}));
    const std::string said = R"("purpose":["gradients","agreement"],)";
    QVERIFY2(line.find(said) != std::string::npos, line.c_str());
    const auto with = [&](const std::string& purpose) {
      std::string other = line;
      return decode_event(other.replace(other.find(said), said.size(), purpose));
    };
    const auto purposes = [](const Result<RunEvent>& event) { return std::get<Sync>(event->body).purpose; };
    QCOMPARE(purposes(with("")), std::vector(2, CollectivePurpose::unknown));
    // A name of a later version is one thing for certain: not a gradient.
    QCOMPARE(purposes(with(R"("purpose":["gradients","prophecy"],)")),
             (std::vector{CollectivePurpose::gradients, CollectivePurpose::agreement}));
    QVERIFY(!with(R"("purpose":["gradients"],)"));
    QVERIFY(!with(R"("purpose":[1, 2],)"));
  }

  void a_reduction_of_gradients_is_a_sum_over_data_for_gradients() {
    for (int i = 0; i <= static_cast<int>(CollectivePurpose::checkpoint); ++i) {
      const auto purpose = static_cast<CollectivePurpose>(i);
      const bool counts = purpose == CollectivePurpose::gradients || purpose == CollectivePurpose::unknown;
      for (const char* op : {"all_reduce", "reduce_scatter"}) QCOMPARE(reduces_gradients(purpose, "data", op), counts);
      QVERIFY(!reduces_gradients(purpose, "data", "all_gather"));
      QVERIFY(!reduces_gradients(purpose, "tensor", "all_reduce"));
    }
  }

  void what_an_update_did_not_measure_is_not_in_its_line() {
    const auto bare = encode_event(make(Update{}));
    for (const char* field : {"losses", "loss_scale", "update_norm", "parameter_norm", "gradient_zeros"})
      QVERIFY2(bare.find(field) == std::string::npos, field);
    const auto read = decode_event(bare);
    QVERIFY(read.has_value());
    QVERIFY(!std::get<Update>(read->body).update_norm.has_value());
    // Measured, and nothing: 0 is a measurement.
    const auto skipped = encode_event(make(Update{.update_norm = 0.0, .gradient_zeros = 0}));
    QVERIFY(skipped.ends_with(R"("update_norm":0,"gradient_zeros":0})"));
    QCOMPARE(std::get<Update>(decode_event(skipped)->body).gradient_zeros.value_or(-1), 0);
  }

  void parts_of_a_loss_and_scalars_are_objects_of_numbers() {
    const auto line = encode_event(make(Evaluation{
        .update = 1, .losses = {{"a part", not_a_number}, {"lm loss", 2.5}}, .scalars = {{"accuracy", 0.75}}}));
    QVERIFY2(line.ends_with(R"("losses":{"a part":"nan","lm loss":2.5},"scalars":{"accuracy":0.75}})"), line.c_str());
    const auto read = decode_event(line);
    QVERIFY(read.has_value());
    const NamedLosses& losses = std::get<Evaluation>(read->body).losses;
    QCOMPARE(losses.size(), std::size_t{2});
    QVERIFY(std::isnan(losses.at("a part")));
    QCOMPARE(losses.at("lm loss"), 2.5);
    QCOMPARE(std::get<Evaluation>(read->body).scalars, (NamedNumbers{{"accuracy", 0.75}}));
  }

  void control_traffic_carries_no_number() {
    QVERIFY(encode_event(make(Heartbeat{"join", 0, 0, 0})).find("seq") == std::string::npos);
    QVERIFY(encode_event(make(Holding{1, false})).find("seq") == std::string::npos);
  }

  void non_finite_numbers_are_strings_and_come_back() {
    Update update;
    update.loss = not_a_number;
    update.grad_norm = infinite;
    update.lr = -infinite;
    update.weights = {not_a_number, -0.0, 5e-324, 1.7976931348623157e308};
    const auto line = encode_event(make(update));
    QVERIFY(line.find(R"("loss":"nan")") != std::string::npos);
    QVERIFY(line.find(R"("grad_norm":"inf")") != std::string::npos);
    QVERIFY(line.find(R"("lr":"-inf")") != std::string::npos);
    const auto read = decode_event(line);
    QVERIFY(read.has_value());
    const auto& back = std::get<Update>(read->body);
    QVERIFY(std::isnan(back.loss));
    QCOMPARE(back.grad_norm, infinite);
    QCOMPARE(back.lr, -infinite);
    QVERIFY(std::isnan(back.weights[0]));
    QVERIFY(std::signbit(back.weights[1]));
    QCOMPARE(back.weights[2], 5e-324);
    QCOMPARE(back.weights[3], 1.7976931348623157e308);
  }

  void every_double_reads_back_bit_for_bit() {
    std::uint64_t state = 88172645463325252ULL;
    for (int i = 0; i < 20000; ++i) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      double value = 0.0;
      std::memcpy(&value, &state, sizeof value);
      if (!std::isfinite(value)) continue;
      const auto read = decode_event(encode_event(make(Evaluation{1, value, 1, 1})));
      QVERIFY(read.has_value());
      const double back = std::get<Evaluation>(read->body).loss;
      QVERIFY(std::memcmp(&back, &value, sizeof value) == 0);
    }
  }

  void bytes_that_are_not_text_do_not_break_the_line() {
    const auto read = decode_event(encode_event(make(RankFailed{"internal", "m", "w", "p", 0, 3, "\xff\xfe\n", 0, 0})));
    QVERIFY(read.has_value());
    QVERIFY(!std::get<RankFailed>(read->body).log_tail.empty());
  }

  void a_kind_of_the_future_is_kept_as_it_came() {
    const std::string line = R"({"v":2,"kind":"dream","rank":2,"seq":9,"time_ns":5,"colour":"blue"})";
    const auto read = decode_event(line);
    QVERIFY(read.has_value());
    QCOMPARE(read->rank, 2);
    QCOMPARE(read->seq, 9);
    QCOMPARE(std::get<UnknownEvent>(read->body).kind, std::string("dream"));
    QCOMPARE(encode_event(*read), line);
  }

  void a_field_of_the_future_is_passed_over() {
    const auto read =
        decode_event(R"({"v":2,"kind":"holding","rank":0,"time_ns":1,"micro_step":3,"held":true,"mood":"good"})");
    QVERIFY(read.has_value());
    QCOMPARE(std::get<Holding>(read->body).micro_step, 3);
  }

  void bad_lines_are_refused_with_the_reason_data() {
    const Rows<QByteArray, QString> row;
    row("empty", QByteArray(""), "JSON");
    row("torn", QByteArray("{\"v\":2,\"kind\":\"upd"), "JSON");
    row("not an object", QByteArray("[1,2]"), "object");
    row("no version", QByteArray(R"({"kind":"holding","rank":0,"time_ns":1})"), "\"v\"");
    row("no kind", QByteArray(R"({"v":2,"rank":0,"time_ns":1})"), "\"kind\"");
    row("no seq",
        QByteArray(R"({"v":2,"kind":"evaluation","rank":0,"time_ns":1,"update":1,"loss":1,"batches":1,"tokens":1})"),
        "\"seq\"");
    row("missing field", QByteArray(R"({"v":2,"kind":"holding","rank":0,"time_ns":1,"micro_step":1})"), "\"held\"");
    row("wrong type", QByteArray(R"({"v":2,"kind":"holding","rank":0,"time_ns":1,"micro_step":"1","held":true})"),
        "wrong type");
    row("real for integer", QByteArray(R"({"v":2,"kind":"holding","rank":0,"time_ns":1,"micro_step":1.5,"held":true})"),
        "wrong type");
    row("integer too large",
        QByteArray(R"({"v":2,"kind":"holding","rank":0,"time_ns":1,"micro_step":9223372036854775808,"held":true})"),
        "wrong type");
    row("word for number",
        QByteArray(
            R"({"v":2,"kind":"evaluation","rank":0,"seq":1,"time_ns":1,"update":1,"loss":"many","batches":1,"tokens":1})"),
        "loss");
    row("arrays of unequal length",
        QByteArray(
            R"({"v":2,"kind":"micro_steps","rank":0,"seq":1,"time_ns":1,"micro_step":[1,2],"update":[1,1],"position":[1,2],"size":[2,2],"epoch":[0,0],"batch":[0,1],"loss":[1],"tokens":[1,1],"samples":[1,1],"end_ns":[1,1],"compute_ns":[1,1]})"),
        "entries");
    row("number too large for a double",
        QByteArray(
            R"({"v":2,"kind":"evaluation","rank":0,"seq":1,"time_ns":1,"update":1,"loss":1e999,"batches":1,"tokens":1})"),
        "JSON");
    row("parts of a loss as a list",
        QByteArray(
            R"({"v":2,"kind":"evaluation","rank":0,"seq":1,"time_ns":1,"update":1,"loss":1,"batches":1,"tokens":1,"losses":[1]})"),
        "\"losses\" is of the wrong type");
    row("a part of a loss that is no number",
        QByteArray(
            R"({"v":2,"kind":"evaluation","rank":0,"seq":1,"time_ns":1,"update":1,"loss":1,"batches":1,"tokens":1,"losses":{"lm loss":{}}})"),
        "\"losses\" is of the wrong type");
    row("too deep", QByteArray(3000000, '['), "longer");
    row("deep but short", QByteArray(1000, '['), "deeper");
    row("too long", QByteArray("{\"v\":2,\"kind\":\"") + QByteArray((1 << 20) + 1, 'x') + QByteArray("\"}"), "longer");
  }
  void bad_lines_are_refused_with_the_reason() {
    const auto [line, reason] = current_row<QByteArray, QString>();
    const auto read = decode_event(std::string_view(line.data(), static_cast<std::size_t>(line.size())));
    VERIFY_FAILS(read, ErrorCode::protocol, reason.toStdString());
  }

  void another_version_is_refused_naming_both() {
    const std::string line = R"({"v":%1,"kind":"holding","rank":0,"time_ns":1,"micro_step":1,"held":true})";
    for (const int other : {event_format_version - 1, event_format_version + 1}) {
      const auto read = decode_event(QString::fromStdString(line).arg(other).toStdString());
      QVERIFY(!read.has_value());
      QVERIFY(read.error().message.find("version " + std::to_string(other)) != std::string::npos);
      QVERIFY(read.error().message.find("version " + std::to_string(event_format_version)) != std::string::npos);
    }
  }

  void brackets_in_strings_do_not_count_as_depth() {
    const auto read = decode_event(
        encode_event(make(Warning{"slow", std::string(500, '[') + "\\\"" + std::string(500, '{'), "", 0})));
    QVERIFY(read.has_value());
  }

  void commands_read_back_as_written() {
    for (const auto kind :
         {RankCommandKind::hold, RankCommandKind::hold_after, RankCommandKind::proceed, RankCommandKind::stop_after,
          RankCommandKind::checkpoint, RankCommandKind::checkpoint_and_stop, RankCommandKind::set_steps}) {
      const bool numbered = kind == RankCommandKind::hold_after || kind == RankCommandKind::stop_after;
      const RankCommand written{kind, numbered ? 42 : 0, kind == RankCommandKind::set_steps ? 8 : 0};
      const auto read = decode_command(encode_command(written));
      QVERIFY(read.has_value());
      QVERIFY(*read == written);
    }
    QVERIFY(!decode_command(R"({"v":2,"command":"dance"})").has_value());
    QVERIFY(!decode_command(R"({"v":2,"command":"hold_after"})").has_value());
    QVERIFY(!decode_command(R"({"v":2,"command":"set_steps"})").has_value());
    QVERIFY(!decode_command(R"({"v":2,"command":"hold"})").has_value());
    QVERIFY(!decode_command("hold").has_value());
  }
};

ACCRUE_TEST_MAIN(TestEventCodec)

}  // namespace test_event_codec
#include "test_event_codec.moc"
