// SPDX-License-Identifier: Apache-2.0
// Messages of accrue-run for invalid command lines.
#include <QTemporaryDir>
#include <QTest>

#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_command_line {

using namespace accrue::test;

class TestCommandLine : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;

  Outcome run(const QStringList& arguments) const {
    return Program(programPath("accrue-run"), arguments,
                   {"XDG_RUNTIME_DIR=" + temporary_.path(), "XDG_DATA_HOME=" + temporary_.path()})
        .finish();
  }

 private Q_SLOTS:
  void bad_arguments_are_refused_data() {
    // Columns: the command line, and the message with its fault, place and correction.
    const Rows<QStringList, QString> row;
    row("none", {}, "accrue-run: a subcommand is missing. There are spec, plan, ");
    row("unknown verb", {"dance"}, "accrue-run: there is no subcommand \"dance\". There are spec, plan, ");
    row("unknown verb of data", {"data", "dance"},
        "accrue-run data: there is no subcommand \"dance\". There are build, ");
    row("no spec", {"run"}, "accrue-run run: SPEC is missing: The run spec (*.accrue)\n\"accrue-run run --help\"");
    row("missing spec", {"run", "/nowhere.accrue"},
        "/nowhere.accrue: error: the spec does not exist (expected the path of a *.accrue file)");
    row("a folder for a spec", {"run", "/"}, "/: error: the spec is not a file");
    row("unknown option", {"plan", "x", "--loud"}, "accrue-run plan: there is no option \"--loud\". There are ");
    row("unknown option in place of another", {"spec", "--default"},
        "there is no option \"--default\". There are --defaults, --schema, ");
    row("a word too many", {"doctor", "all"}, "accrue-run doctor: \"all\" is one word too many");
    row("one folder to compare", {"compare", "a"}, "DIR: At least 2 required");
    row("spec without a choice", {"spec"}, "Exactly 1 option from [--defaults,");
    row("no tool to export to", {"export", "a.accrue"}, "--to is missing: The other tool, one of {accelerate,");
    row("another tool", {"export", "a.accrue", "--to", "pytrch"}, "--to: pytrch not in {accelerate,");
    row("a word for a number", {"verify", "a.accrue", "--updates", "many"},
        "--updates: takes a whole number from 1 to 1000000, not \"many\"");
    row("a number beyond bounds", {"generate", "/nowhere", "--prompt", "x", "--length", "0"},
        "--length: takes a whole number from 1 to ");
    row("a word for a temperature", {"generate", "/nowhere", "--temperature", "hot"},
        "accrue-run generate: --temperature takes a number, not \"hot\"");
    row("a branch without a place", {"resume", "/nowhere", "--set", "run.seed=2"}, "--set requires --out");
    row("an option without its value", {"plan", "a.accrue", "--set"}, "--set needs a value: KEY=VALUE");
    row("show no run", {"show", "/nowhere"}, "/nowhere: does not exist. Check the path");
    row("resume no run", {"resume", "/nowhere"}, "/nowhere: does not exist. Check the path");
    row("resume a folder", {"resume", "/"}, "/: is not a run folder: it holds neither");
    row("stop no run", {"stop", "/nowhere"}, "/nowhere: does not exist. Check the path");
    row("step no run", {"step", "/nowhere"}, "/nowhere: does not exist. Check the path");
    row("generate with no run", {"generate", "/nowhere", "--prompt", "x"}, "/nowhere: does not exist. Check the path");
    row("steps of no run", {"steps", "/nowhere", "4"}, "/nowhere: does not exist. Check the path");
    row("steps of what", {"steps", "/nowhere"}, "accrue-run steps: N is missing: Micro-steps per window");
    row("no steps", {"steps", "/nowhere", "0"}, "N: takes a whole number from 1 to 1048576, not \"0\"");
    row("attach no run", {"attach", "/nowhere"}, "/nowhere: does not exist. Check the path");
    row("show a file", {"show", "/etc/passwd"}, "/etc/passwd: is a file, not a run folder");
    row("a spec for a lesson", {"lesson", sourcePath("resources/presets/toy.accrue")},
        "accrue_lesson: is missing, so this is no lesson (expected");
    row("a folder for a text", {"data", "build", "/", "--out", "nothing"}, "Name the files of a folder one by one");
  }
  void bad_arguments_are_refused() {
    const auto [arguments, said] = current_row<QStringList, QString>();
    const auto outcome = run(arguments);
    QCOMPARE(outcome.status, 2);
    QVERIFY2(outcome.out.isEmpty(), qPrintable(outcome.out));
    QVERIFY2(outcome.err.contains(said), qPrintable(outcome.err));
  }

  void the_manual_is_printed() {
    const Outcome pages = run({"help"});
    QCOMPARE(pages.status, 0);
    QVERIFY2(pages.out.contains("  layouts            can divide a model over ranks"), qPrintable(pages.out));
    const Outcome page = run({"help", "data"});
    QCOMPARE(page.status, 0);
    QFile source(sourcePath("resources/manual/data.md"));
    QVERIFY(source.open(QIODevice::ReadOnly));
    QCOMPARE(page.out, QString::fromUtf8(source.readAll()));
    const Outcome none = run({"help", "dance"});
    QCOMPARE(none.status, 2);
    QVERIFY2(none.err.contains("no key of a spec is called \"dance\". accrue-run help lists"), qPrintable(none.err));
    // A verb and a key are explained, too, and a slip of the pen is answered.
    QCOMPARE(run({"help", "plan"}).out, run({"plan", "--help"}).out);
    const Outcome key = run({"help", "accumulation.steps"});
    QCOMPARE(key.status, 0);
    QVERIFY2(key.out.startsWith("[accumulation]\n# N: micro-steps") && key.out.endsWith("\nsteps = 4\n"),
             qPrintable(key.out));
    QVERIFY(run({"help", "accumulation.step"}).err.contains("Did you mean \"accumulation.steps\"?"));
  }

  void the_help_of_doctor_names_its_own_exit_status() {
    const auto help = run({"doctor", "--help"}).out;
    QVERIFY2(help.contains("Exit status: the number of problems") && !help.contains("ranks were lost"),
             qPrintable(help));
  }

  void files_give_a_terminal_no_orders_data() {
    // The verb with what stands before and behind the file, the file's name and text, and what is said of it.
    const Rows<QStringList, QString, QByteArray, QStringList, QString> row;
    const QByteArray key = "accrue = 1\n[model]\n\"k\\u001b]0;x\\u0007\" = 1\n";
    const QString said = "model.k\\x1b]0;x\\x07";
    for (const char* verb : {"plan", "trace", "verify", "schedule", "grid", "run"})
      row(verb, {verb}, "a.accrue", key, {}, said);
    row("export", {"export"}, "a.accrue", key, {"--to", "pytorch"}, said);
    row("a value", {"plan"}, "a.accrue", "accrue = 1\n[model]\nkind = \"\\u001b[31m\"\n", {}, "\\u001B[31m");
    row("eight-bit orders", {"plan"}, "a.accrue", "accrue = 1\n[model]\nkind = \"\\u009b31m\"\n", {}, "\\x9b31m");
    row("--set", {"plan"}, "a.accrue", "accrue = 1\n", {"--set", "model.\x1b[31m=1"}, "model.\\x1b[31m");
    row("a key of YAML", {"spec", "--from-accelerate"}, "a.yaml", "debug: no\n\"k\\e[31m\": 1\n", {}, "k\\x1b[31m");
    row("a value of YAML", {"spec", "--from-accelerate"}, "a.yaml", "mixed_precision: \"\\e[31m\"\n", {}, "\\x1b[31m");
    row("a cell of a table", {"plan"}, "a.accrue",
        "accrue = 1\n[model]\nkind = \"linear\"\n[data]\nkind = \"csv\"\npath = \"cell.csv\"\n", {}, "\\x1b[31m");
    row("a lesson", {"lesson"}, "a.accrue-lesson", "accrue_lesson = 1\n\"k\\u001b[31m\" = 1\n", {}, "k\\x1b[31m");
  }
  void files_give_a_terminal_no_orders() {
    const auto [verb, name, text, more, said] = current_row<QStringList, QString, QByteArray, QStringList, QString>();
    QTemporaryDir folder;
    const auto write = [&](const QString& to, const QByteArray& content) {
      QFile file(folder.filePath(to));
      return file.open(QIODevice::WriteOnly) && file.write(content) == content.size();
    };
    QVERIFY(write(name, text) && write("cell.csv", "a,b\n1,\x1b[31m\n"));
    const Outcome outcome = run(verb + QStringList{folder.filePath(name)} + more);
    const QString printed = outcome.out + outcome.err;
    QVERIFY2(printed.contains(said), qPrintable(printed));
    for (const QChar each : printed)
      QVERIFY2(each == '\n' || each == '\t' || each.category() != QChar::Other_Control, qPrintable(printed));
  }

  void an_accelerate_configuration_is_read_with_the_deepspeed_file_beside_it() {
    QTemporaryDir folder;
    const auto write = [&](const char* name, const char* text) {
      QFile file(folder.filePath(name));
      QVERIFY(file.open(QIODevice::WriteOnly));
      file.write(text);
    };
    write("a.yaml",
          "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\nnum_processes: 2\n");
    const QStringList arguments{"spec", "--from-accelerate", folder.filePath("a.yaml")};
    const Outcome missing = run(arguments);
    QCOMPARE(missing.status, 0);
    QVERIFY(missing.out.contains("steps = 1"));
    QVERIFY2(
        missing.err.contains(folder.filePath("ds.json") + ": the file does not exist or is no file; what it holds, "
                                                          "gradient_accumulation_steps too, is not in the spec"),
        qPrintable(missing.err));
    write("ds.json", "{\"gradient_accumulation_steps\": 8, \"zero_optimization\": {\"stage\": 2}}");
    const Outcome read = run(arguments);
    QVERIFY(read.out.contains("steps = 8"));
    QVERIFY2(read.err.contains(folder.filePath("ds.json") + ":1: zero_optimization.stage = 2: not taken"),
             qPrintable(read.err));
    write("a.yaml", "services:\n  - name: web\nreplicas: 3\n");
    const Outcome other = run(arguments);
    QCOMPARE(other.status, 2);
    QVERIFY2(other.err.contains("there is no key of Accelerate; the first is services"), qPrintable(other.err));
    QCOMPARE(other.out, QString());
  }
};

ACCRUE_TEST_MAIN(TestCommandLine)

}  // namespace test_command_line
#include "test_command_line.moc"
