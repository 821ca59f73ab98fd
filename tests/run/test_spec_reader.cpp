// SPDX-License-Identifier: Apache-2.0
// Every way in which a spec can be wrong, with the words that a person then reads.
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QTest>

#include <fstream>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_spec_reader {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

QString texts(const std::vector<Finding>& findings) {
  QStringList lines;
  for (const Finding& finding : findings) lines << QString::fromStdString(finding.text());
  return lines.join('\n');
}

void write(const QString& path, const QByteArray& bytes) {
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  QCOMPARE(file.write(bytes), bytes.size());
}

std::string nested(int levels, const char* open, const char* close) {
  std::string text = "accrue = 1\n[data]\nx = ";
  for (int i = 0; i < levels; ++i) text += open;
  for (int i = 0; i < levels; ++i) text += close;
  return text + "\n";
}

std::string dotted(std::size_t parts) {
  std::string text = "accrue = 1\na";
  for (std::size_t i = 0; i < parts; ++i) text += ".a";
  return text + " = 1\n";
}

}  // namespace

class TestSpecReader : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void says_what_is_wrong_and_where_data() {
    QTest::addColumn<QByteArray>("toml");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* name, const char* toml, const char* expected) {
      QTest::newRow(name) << QByteArray(toml) << QString::fromUtf8(expected);
    };
    row("unknown key", "accrue = 1\n[accumulation]\nstesp = 4\n",
        "s.accrue:3:1: error: accumulation.stesp: is not a key of a spec (found stesp, expected accumulation.steps)");
    row("another tool's name", "accrue = 1\n[accumulation]\ngradient_accumulation_steps = 4\n",
        "s.accrue:3:1: error: accumulation.gradient_accumulation_steps: is not a key of a spec (found "
        "gradient_accumulation_steps, expected accumulation.steps (which Accelerate calls "
        "gradient_accumulation_steps))");
    row("Megatron-LM's name of the data", "[data]\ndata_path = \"x\"\n",
        "s.accrue:2:1: error: data.data_path: is not a key of a spec (found data_path, expected data.paths (which "
        "Megatron-LM calls --data-path))");
    row("key of an earlier version", "[data]\nstream = true\n",
        "s.accrue:2:1: error: data.stream: was removed: leave it out, as the length of the data is known before every "
        "run");
    row("context parallelism", "[parallel]\ncontext = 2\n",
        "s.accrue:2:1: error: parallel.context: is not offered: ranks cannot share one sequence in the attention: no "
        "rank passes keys and values on to the next. parallel.sequence shares the positions everywhere else");
    row("experts, by another tool's name", "[model]\nnum_experts = 8\n",
        "s.accrue:2:1: error: model.num_experts: is not offered: there is no model with experts: no layer routes "
        "tokens to them and no axis exchanges tokens between ranks");
    row("choice of an earlier version", "[accumulation]\nuneven_ranks = \"join\"\n",
        "s.accrue:2:16: error: accumulation.uneven_ranks: was removed: \"empty_micro_steps\" does the same (found "
        "\"join\", expected one of repeat, empty_micro_steps, drop)");
    row("unknown section", "[acumulation]\nsteps = 4\nmicro_batch = 2\n",
        "s.accrue:1:2: error: acumulation: is not a section of a spec (found acumulation, expected [accumulation])");
    row("key outside a section", "steps = 4\n",
        "s.accrue:1:1: error: steps: is not a key of a spec (found steps, expected accumulation.steps)");
    row("section as a value", "model = 3\n",
        "s.accrue:1:9: error: model: is a section, not a value (found the whole number 3, expected [model] with keys "
        "below it)");
    row("section as a list", "[[model]]\nlayers = 3\n",
        "s.accrue:1:1: error: model: is a section, not a value (found a list, expected [model] with keys below it)");
    row("wrong type", "[accumulation]\nsteps = \"4\"\n",
        "s.accrue:2:9: error: accumulation.steps: has the wrong type (found the string \"4\", expected a whole number "
        "from 1 to 1048576)");
    row("real for a whole number", "[accumulation]\nsteps = 4.0\n",
        "s.accrue:2:9: error: accumulation.steps: has the wrong type (found the number 4.0, expected a whole number "
        "from 1 to 1048576)");
    row("N = 0", "[accumulation]\nsteps = 0\n",
        "s.accrue:2:9: error: accumulation.steps: is out of range (found 0, expected a whole number from 1 to "
        "1048576)");
    row("rate of zero", "[optimizer]\nlr = 0.0\n",
        "s.accrue:2:6: error: optimizer.lr: is out of range (found 0, expected a number above 0 and up to 1000000)");
    row("not a number", "[optimizer]\nlr = nan\n",
        "s.accrue:2:6: error: optimizer.lr: is not a finite number (found nan, expected a number above 0 and up to "
        "1000000)");
    row("unknown choice", "[accumulation]\ndialect = \"accelrate\"\n",
        "s.accrue:2:11: error: accumulation.dialect: is not one of the choices (found \"accelrate\", expected one of "
        "accrue, llm, colossalai, accelerate, mmengine)");
    row("row of a matrix", "[accumulation]\nlength_schedule = [[0, 4], [10]]\n",
        "s.accrue:2:19: error: accumulation.length_schedule: has a row that does not fit (found [[0, 4], [10]], "
        "expected a list of rows [from, steps])");
    row("fraction among labels", "[data]\nlabels = [[1, 0.5]]\n",
        "s.accrue:2:10: error: data.labels: has a row that does not fit (found [[1, 0.5]], expected a list of rows "
        "[whole number, ...])");
    row("newer format", "accrue = 2\n[model]\nwarp = 9\n",
        "s.accrue:1:10: error: accrue: the file has a newer format version than this program reads (found version 2, "
        "expected version 1, or a newer Accrue)");
    row("format that never was", "accrue = 0\n",
        "s.accrue:1:10: error: accrue: is not a format version (found the whole number 0, expected 1)");
    row("empty file", "", "s.accrue: error: the spec is empty (expected at least the line accrue = 1)");
    row("blank file", " \n\t\n", "s.accrue: error: the spec is empty (expected at least the line accrue = 1)");
  }
  void says_what_is_wrong_and_where() {
    QFETCH(QByteArray, toml);
    QFETCH(QString, expected);
    const SpecReading reading = parse_spec(toml.toStdString(), "s.accrue");
    QCOMPARE(texts(reading.findings), expected);
    QVERIFY(!reading.ok());
    QVERIFY(reading.spec == RunSpec());
  }

  void reports_everything_at_once_in_the_order_of_the_file() {
    const SpecReading reading = parse_spec(
        "accrue = 1\n[run]\nupdates = 0\n[accumulation]\nsteps = 8\nmicro_batch = -1\ntial = \"carry\"\n"
        "[model]\nlayers = \"six\"\nwidth = 64\n",
        "s.accrue");
    QStringList keys;
    for (const Finding& finding : reading.findings) keys << QString::fromStdString(finding.key);
    QCOMPARE(keys, QStringList({"run.updates", "accumulation.micro_batch", "accumulation.tial", "model.layers"}));
    QCOMPARE(reading.spec.accumulation.steps, 8);  // what is right is taken
    QCOMPARE(reading.spec.accumulation.micro_batch, RunSpec().accumulation.micro_batch);
    QCOMPARE(reading.spec.model.width, 64);
  }

  void offers_the_value_that_mends_it_data() {
    const Rows<QByteArray, QString> row;
    row("too small", QByteArray("[accumulation]\nsteps = 0"), "1");
    row("too large", QByteArray("[model]\ndropout = 2.0"), "0.95");
    row("quoted number", QByteArray("[accumulation]\nsteps = \"16\""), "16");
    row("real for whole", QByteArray("[accumulation]\nsteps = 16.0"), "16");
    row("quoted truth", QByteArray("[data]\nshuffle = \"False\""), "false");
    row("misspelt choice", QByteArray("[schedule]\nkind = \"wsd\""), "WSD");
  }
  void offers_the_value_that_mends_it() {
    const auto [toml, fix] = current_row<QByteArray, QString>();
    const SpecReading reading = parse_spec(toml.toStdString(), "s.accrue");
    QCOMPARE(reading.findings.size(), 1u);
    QVERIFY(reading.findings[0].fix_value.has_value());
    QCOMPARE(QString::fromStdString(*reading.findings[0].fix_value), fix);
    RunSpec mended;
    std::vector<Finding> findings;
    set_field(mended, reading.findings[0].key + "=" + *reading.findings[0].fix_value, findings);
    QCOMPARE(texts(findings), QString());
  }

  void broken_toml_is_one_finding_with_its_place_data() {
    const Rows<QByteArray, int, QString> row;
    row("no value", QByteArray("accrue = 1\n[model]\nlayers =\n"), 3, "not valid TOML");
    row("string without end", QByteArray("[data]\npath = \"a\nb = 1\n"), 2, "not valid TOML");
    row("key twice", QByteArray("[model]\nlayers = 3\nwidth = 9\nlayers = 4\n"), 4, "given twice");
    row("section twice", QByteArray("[model]\nlayers = 3\n[run]\n[model]\nwidth = 9\n"), 4, "given twice");
    row("binary", QByteArray("accrue = 1\n\x01\x02\xff\n", 15), 2, "not valid TOML");
    row("not UTF-8", QByteArray("accrue = 1\n[data]\npath = \"\xff\xfe\"\n"), 3,
        "s.accrue:3:9: error: is not valid TOML, for it is not UTF-8 (found the byte 0xff, expected text in UTF-8)");
    row("not UTF-8 behind two bytes of one letter", QByteArray("name = \"\xc3\xa9\xc3\"\n"), 1,
        "s.accrue:1:10: error:");
    row("cut short in a comment", QByteArray("# \xe2\x82"), 1, "the byte 0xe2");
    row("a surrogate", QByteArray("a = 1\n# \xed\xa0\x80\n"), 2, "the byte 0xed");
    row("beyond Unicode", QByteArray("[a\xf4\x90\x80\x80]\n"), 1, "the byte 0xf4");
    row("overlong", QByteArray("\xc0\x80 = 1\n"), 1, "s.accrue:1:1: error:");
    row("UTF-16",
        QByteArray("\xff\xfe"
                   "a\0=\0",
                   6),
        1, "s.accrue:1:1: error:");
  }
  void broken_toml_is_one_finding_with_its_place() {
    const auto [toml, line, words] = current_row<QByteArray, int, QString>();
    const SpecReading reading = parse_spec(toml.toStdString(), "s.accrue");
    QCOMPARE(reading.findings.size(), 1u);
    QCOMPARE(reading.findings[0].line, line);
    QVERIFY(reading.findings[0].column > 0);
    QVERIFY2(texts(reading.findings).contains(words), qPrintable(texts(reading.findings)));
  }

  void hostile_nesting_is_one_finding_data() {
    QTest::addColumn<QByteArray>("toml");
    QTest::addColumn<QString>("words");
    const auto row = [](const char* name, const std::string& toml, const char* words) {
      QTest::newRow(name) << QByteArray::fromStdString(toml) << words;
    };
    row("200 KB of nested lists", nested(100'000, "[", "]"), "is too large (found 200023 bytes");
    row("200 KB of a dotted key", dotted(100'000), "is too large");
    row("lists below the size limit", nested(20'000, "[", "]"), "is nested too deeply");
    row("inline tables", nested(9'000, "{a=", "}"), "is nested too deeply");
    row("dotted key below the size limit", dotted(30'000), "is nested too deeply");
    row("dotted section", "[" + dotted(30'000).substr(11), "is nested too deeply");
    row("spaced dots", "a" + std::string(200, '.') + " = 1", "is nested too deeply");
  }
  void hostile_nesting_is_one_finding() {
    QFETCH(QByteArray, toml);
    QFETCH(QString, words);
    const SpecReading reading = parse_spec(toml.toStdString(), "s.accrue");
    QCOMPARE(reading.findings.size(), 1u);
    QVERIFY2(texts(reading.findings).contains(words), qPrintable(texts(reading.findings)));
  }

  void brackets_and_dots_in_strings_are_no_nesting() {
    const std::string deep(500, '[');
    const std::string dots(500, '.');
    const SpecReading reading = parse_spec("accrue = 1  # " + deep + dots + "\n[run]\nname = \"" + deep + dots +
                                               "\\\"" + deep + "\"\n[data]\npath = '" + dots + "'\n",
                                           "s.accrue");
    QCOMPARE(texts(reading.findings), QString());
    QCOMPARE(QString::fromStdString(reading.spec.run.name), QString::fromStdString(deep + dots + "\"" + deep));
  }

  void whole_numbers_are_taken_for_reals() {
    const SpecReading reading = parse_spec("[optimizer]\nlr = 1\n[data]\nx = [[1, 2.5], [3]]\n", "s.accrue");
    QCOMPARE(texts(reading.findings), QString());
    QCOMPARE(reading.spec.optimizer.lr, 1.0);
    QVERIFY(reading.spec.data.x == Matrix({{1.0, 2.5}, {3.0}}));
  }

  void files_that_cannot_be_read_are_findings() {
    QTemporaryDir dir;
    const std::filesystem::path base = dir.path().toStdString();
    const auto text = [](const std::filesystem::path& file) { return texts(read_spec(file).findings); };
    QCOMPARE(text(base / "no.accrue"), QString::fromStdString((base / "no.accrue").string()) +
                                           ": error: the spec does not exist (expected the path of a *.accrue file)");
    QVERIFY(text(base).contains("the spec is not a file (found a folder"));
    QCOMPARE(::mkfifo((base / "pipe").c_str(), 0600), 0);  // opening it would wait for ever
    QVERIFY(text(base / "pipe").contains("the spec is not a file"));
    write(dir.filePath("empty.accrue"), "");
    QVERIFY(text(base / "empty.accrue").contains("the spec is empty"));
    write(dir.filePath("large.accrue"), QByteArray(200'000, '#'));
    QVERIFY(text(base / "large.accrue").contains("is too large (found 200000 bytes, expected at most 65536 bytes)"));
    write(dir.filePath("closed.accrue"), "accrue = 1\n");
    QCOMPARE(::chmod((base / "closed.accrue").c_str(), 0), 0);
    if (std::ifstream(base / "closed.accrue").good()) return;  // the superuser reads everything
    QVERIFY(text(base / "closed.accrue").contains("the spec cannot be read"));
  }

  void sets_one_key_data() {
    const Rows<QString, QString> row;
    row("whole number", "accumulation.steps=16", "16");
    row("spaces", " accumulation.steps = 16 ", "16");
    row("bare word", "accumulation.dialect=accelerate", "\"accelerate\"");
    row("quoted word", "accumulation.dialect=\"accelerate\"", "\"accelerate\"");
    row("word that looks like a number", "run.name=2026", "\"2026\"");
    row("words", "run.name=a long run", "\"a long run\"");
    row("word with an equals sign", "run.name=a=b", "\"a=b\"");
    row("list", "model.hidden=[8, 8]", "[8, 8]");
    row("real", "optimizer.lr=3e-4", "3e-4");
    row("nothing clears", "run.updates=", "");
  }
  void sets_one_key() {
    const auto [assignment, expected] = current_row<QString, QString>();
    RunSpec spec;
    spec.run.updates = 7;
    std::vector<Finding> findings;
    set_field(spec, assignment.toStdString(), findings);
    QCOMPARE(texts(findings), QString());
    const std::string key = assignment.section('=', 0, 0).trimmed().toStdString();
    QCOMPARE(QString::fromStdString(format_value(find_field(key)->get(spec))), expected);
  }

  void refuses_a_wrong_setting_data() {
    QTest::addColumn<QString>("assignment");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* name, const char* assignment, const char* expected) {
      QTest::newRow(name) << assignment << expected;
    };
    row("no value", "accumulation.steps",
        "--set: error: accumulation.steps: has no value (found accumulation.steps, expected key=value)");
    row("unknown key", "accumulation.step=4",
        "--set: error: accumulation.step: is not a key of a spec (found accumulation.step=4, expected "
        "accumulation.steps)");
    row("unknown key like no other", "accumulation.qqqqqqqq=4",
        "--set: error: accumulation.qqqqqqqq: is not a key of a spec (found accumulation.qqqqqqqq=4, expected a key "
        "that \"accrue-run spec --defaults\" lists)");
    row("key of an earlier version", "data.shard=contiguous-batches",
        "--set: error: data.shard: was removed: leave it out, as batches always go to the ranks in turn");
    row("choice of an earlier version", "accumulation.clip_stage=backend",
        "--set: error: accumulation.clip_stage: was removed: \"in_update\" does the same (found \"backend\", expected "
        "one of in_update, every_micro_step, none)");
    row("wrong type", "accumulation.steps=many",
        "--set: error: accumulation.steps: has the wrong type (found the string \"many\", expected a whole number from "
        "1 to 1048576)");
    row("out of range", "accumulation.steps=0",
        "--set: error: accumulation.steps: is out of range (found 0, expected a whole number from 1 to 1048576)");
    row("unknown choice", "parallel.backend=mpi",
        "--set: error: parallel.backend: is not one of the choices (found \"mpi\", expected one of auto, shm, gloo, "
        "nccl)");
    row("two keys in one", "accumulation.steps=4\nrun.seed=3",
        "--set: error: accumulation.steps: has the wrong type (found the string \"4\\nrun.seed=3\", expected a whole "
        "number from 1 to 1048576)");
  }
  void refuses_a_wrong_setting() {
    QFETCH(QString, assignment);
    QFETCH(QString, expected);
    RunSpec spec;
    std::vector<Finding> findings;
    set_field(spec, assignment.toStdString(), findings);
    QCOMPARE(texts(findings), expected);
    QVERIFY(spec == RunSpec());
  }

  void a_finding_without_a_place_gets_the_place_of_its_key() {
    const SpecReading reading = parse_spec("accrue = 1\n[parallel]\n  data = 9\n", "s.accrue");
    std::vector<Finding> findings(2);
    findings[0].key = "parallel.data";
    findings[0].message = "there are more ranks than samples";
    findings[1].key = "parallel.zero";
    findings[1].message = "is not set in the file";
    locate_findings(findings, reading);
    QCOMPARE(texts(findings), QString("s.accrue:3:10: error: parallel.data: there are more ranks than samples\n"
                                      "s.accrue: error: parallel.zero: is not set in the file"));
  }

  void a_finding_of_a_value_from_set_does_not_point_at_the_file() {
    SpecReading reading = parse_spec("accrue = 1\n[parallel]\n  data = 9\n", "s.accrue");
    set_field(reading, " parallel.data = 7");
    QCOMPARE(reading.spec.parallel.data, 7);
    std::vector<Finding> findings(1);
    findings[0].key = "parallel.data";
    findings[0].message = "there are more ranks than samples";
    locate_findings(findings, reading);
    QCOMPARE(texts(findings), QString("--set: error: parallel.data: there are more ranks than samples"));
  }
};

ACCRUE_TEST_MAIN(TestSpecReader)

}  // namespace test_spec_reader
#include "test_spec_reader.moc"
