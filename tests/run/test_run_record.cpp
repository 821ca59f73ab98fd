// SPDX-License-Identifier: Apache-2.0
// A run folder that is damaged, changed, owned by another user or half made: what is refused, what is said, and what is
// never written over.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <QJsonDocument>
#include <QTemporaryDir>
#include <QTest>
#include <cstring>
#include <fstream>

#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/events/event_codec.h"
#include "accrue/run/events/host_command.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_store.h"
#include "run/host_fixture.h"
#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_run_record {

using namespace accrue;
using namespace accrue_test;
using namespace accrue::test;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = text_of(file);
  const auto at = text.find(from);
  if (at == std::string::npos) qFatal("\"%s\" is not in %s", from.c_str(), file.c_str());
  write(file, text.replace(at, from.size(), to));
}

RunOrder order_in(const fs::path& dir, std::int64_t steps = 4) {
  return {.plan = small_plan({.steps = steps}), .run_id = new_run_id(), .run_dir = dir};
}

/// Every file of a folder with its contents, to see that nothing was touched.
std::map<std::string, std::string> contents(const fs::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    files[entry.path().string()] = entry.is_regular_file() ? text_of(entry.path()) : "";
  return files;
}

Outcome run(const QStringList& arguments, const QString& out_file = {}) {
  return Program(programPath("accrue-run"), arguments,
                 {"ACCRUE_RANK_PROGRAM=" + programPath("accrue-fake-rank"), "ACCRUE_FAKE_RANK=micro_ms=1"}, out_file)
      .finish();
}
Outcome run(const char* verb, const fs::path& dir) {
  return run(QStringList{verb, QString::fromStdString(dir.string())});
}

std::string words_of(const auto& result) {
  return result ? "" : result.error().text();
}
#define VERIFY_REFUSED(result, words) \
  QVERIFY2(words_of(result).find(words) != std::string::npos, words_of(result).c_str())

}  // namespace

class TestRunRecord : public QObject {
  Q_OBJECT
  HostHome home_;

  fs::path fresh() { return home_.fresh(); }

  /// A finished run of fake ranks.
  fs::path finished_run() {
    const auto dir = fresh();
    WatchedHost host(fake_options());
    if (!host.start({small_plan(), dir}) || !host.ends("finished", 0)) qFatal("%s", host.story().c_str());
    return dir;
  }

 private Q_SLOTS:
  void cleanup() { QCOMPARE(home_.leftovers(), std::string()); }

  void a_new_folder_is_claimed_with_its_record_and_lock() {
    const auto dir = fresh();
    RunOrder order = order_in(dir);
    const auto lock = claim_run_folder(order);
    QCOMPARE(words_of(lock), std::string());
    QVERIFY(is_locked(dir));
    QVERIFY(read_spec(dir / "spec.toml").ok());
    QCOMPARE(run_order_from_json(text_of(dir / "plan.json"))->run_id, order.run_id);
    QVERIFY(order.resume_from.empty());
    RunOrder second = order_in(dir);
    const auto refused = claim_run_folder(second);
    VERIFY_REFUSED(refused, "another process holds this run");
  }

  void the_same_run_continues_in_its_folder_under_its_own_name() {
    const auto dir = fresh();
    RunOrder first = order_in(dir);
    QVERIFY(claim_run_folder(first).has_value());
    fs::create_directories(dir / "checkpoints" / "step-3");
    fs::create_directories(dir / "checkpoints" / ".step-4.x.part");
    fs::create_directories(dir / "checkpoints" / ".trash-step-2.x");
    write(dir / "checkpoints" / "step-3" / "manifest.json", "{}");
    const auto plan = text_of(dir / "plan.json");
    RunOrder again = order_in(dir);
    const auto lock = claim_run_folder(again);
    QCOMPARE(words_of(lock), std::string());
    QCOMPARE(again.run_id, first.run_id);
    QCOMPARE(again.resume_from, std::string("newest"));
    QCOMPARE(text_of(dir / "plan.json"), plan);
    QVERIFY(!fs::exists(dir / "checkpoints" / ".step-4.x.part"));
    QVERIFY(!fs::exists(dir / "checkpoints" / ".trash-step-2.x"));
  }

  void another_run_is_refused_by_its_keys_and_left_alone() {
    const auto dir = fresh();
    RunOrder first = order_in(dir);
    QVERIFY(claim_run_folder(first).has_value());
    const auto before = contents(dir);
    RunOrder other = order_in(dir, 8);
    const auto refused = claim_run_folder(other);
    VERIFY_REFUSED(refused, "accumulation.steps is 4 there and 8 here");
    QCOMPARE(refused.error().code, ErrorCode::config);
    QVERIFY(contents(dir) == before);
  }

  void the_record_of_a_supervisor_goes_on_with_its_numbers_and_its_clock() {
    const auto dir = finished_run();
    const auto before = read_events(dir / "events.jsonl");
    std::map<std::int64_t, std::int64_t> next;
    for (const RunEvent& event : before->events) next[event.rank] = event.seq + 1;
    RunOrder order{.plan = small_plan({}), .run_id = "other", .run_dir = dir};
    const auto claimed = claim_run_folder(order);
    QCOMPARE(words_of(claimed), std::string());
    QVERIFY(claimed->continues);
    QCOMPARE(order.run_id, read_run(dir)->run_id);
    QCOMPARE(order.first_seq, (std::vector{next[0], next[1]}));
    QVERIFY(monotonic_ns() - order.origin_ns >= before->events.back().time_ns);
  }

  void a_folder_with_anything_else_in_it_is_not_claimed() {
    const auto dir = fresh();
    fs::create_directories(dir);
    write(dir / "spec.toml", "accrue = 1\n");  // a spec of the user's own
    RunOrder order = order_in(dir);
    QVERIFY(!claim_run_folder(order).has_value());
    QCOMPARE(text_of(dir / "spec.toml"), std::string("accrue = 1\n"));
    QVERIFY(!fs::exists(dir / "run.lock"));
  }

  void a_link_is_no_run_folder() {
    const auto target = fresh();
    const auto link = fresh();
    fs::create_directories(target);
    fs::create_directory_symlink(target, link);
    const auto writer = RunWriter::create(link, "accrue = 1\n");
    VERIFY_REFUSED(writer, "is a link");
    QVERIFY(fs::is_empty(target));
  }

  void a_folder_of_another_user_is_no_run_folder() {
    if (::geteuid() != 0) QSKIP("needs root, to make a folder of another user");
    const auto dir = fresh();
    fs::create_directories(dir);
    QCOMPARE(::chown(dir.c_str(), 65534, 65534), 0);
    const auto writer = RunWriter::create(dir, "accrue = 1\n");
    VERIFY_REFUSED(writer, "another user");
    QVERIFY(fs::is_empty(dir));
  }

  void a_link_in_the_place_of_a_file_to_be_written_is_not_followed() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, "accrue = 1\n");
    const auto precious = home_.path() / "precious";
    write(precious, "thesis");
    fs::create_symlink(precious, dir / ".plan.json.part");
    QVERIFY(writer->write_plan("{}").has_value());
    QCOMPARE(text_of(precious), std::string("thesis"));
    QCOMPARE(text_of(dir / "plan.json"), std::string("{}"));
  }

  void a_folder_in_which_a_start_failed_is_used_again() {
    const auto dir = fresh();
    QVERIFY(RunWriter::create(dir, "accrue = 1\n").has_value());  // no plan was written: the start got no further
    const auto writer = RunWriter::create(dir, "accrue = 1\n# again\n");
    QCOMPARE(words_of(writer), std::string());
    QCOMPARE(text_of(dir / "spec.toml"), std::string("accrue = 1\n# again\n"));
  }

  void a_start_that_is_given_up_leaves_an_empty_folder() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, "accrue = 1\n");
    writer->give_up();
    QVERIFY(fs::is_empty(dir));
  }

  void the_next_opener_clears_what_a_killed_one_left() {
    const auto dir = finished_run();
    for (const char* name : {"checkpoints/.trash-step-1.x", "checkpoints/.step-2.x.part"})
      fs::create_directories(dir / name);
    write(dir / ".summary.json.part", "{");
    const std::vector<const char*> kept = {"refused-step-3", "abandoned-step-4", "replaced-step-5", "step-6"};
    for (const char* name : kept) fs::create_directories(dir / "checkpoints" / name);
    QVERIFY(RunWriter::reopen(dir).has_value());
    for (const char* name : kept) QVERIFY2(fs::exists(dir / "checkpoints" / name), name);
    for (const char* name : {"checkpoints/.trash-step-1.x", "checkpoints/.step-2.x.part", ".summary.json.part"})
      QVERIFY2(!fs::exists(dir / name), name);
  }

  void a_fifo_in_the_folder_hangs_nobody_data() {
    const Rows<QByteArray> row;
    for (const char* name : {"run.lock", "events.jsonl", "summary.json", "plan.json", "spec.toml"}) row(name, name);
  }
  void a_fifo_in_the_folder_hangs_nobody() {
    const auto [name] = current_row<QByteArray>();
    const auto dir = finished_run();
    fs::remove(dir / name.constData());
    QCOMPARE(::mkfifo((dir / name.constData()).c_str(), 0600), 0);
    for (const char* verb : {"show", "resume", "attach", "stop"}) {
      const auto outcome = run(verb, dir);
      QVERIFY2(outcome.status >= 0, verb);
    }
    QVERIFY(run({"compare", QString::fromStdString(dir.string()), QString::fromStdString(dir.string())}).status >= 0);
  }

  void times_that_would_overflow_are_passed_over_by_the_next_writer() {
    const auto dir = finished_run();
    const auto before = RunWriter::reopen(dir)->last_time_ns();
    std::ofstream(dir / "events.jsonl", std::ios::app)
        << R"({"v":1,"kind":"warning","rank":0,"seq":9223372036854775807,"time_ns":1,"class":"c","message":"m"})"
        << "\n"
        << R"({"v":1,"kind":"warning","rank":0,"seq":9,"time_ns":9223372036854775807,"class":"c","message":"m"})"
        << "\n";
    const auto writer = RunWriter::reopen(dir);
    QVERIFY(writer.has_value());
    QCOMPARE(writer->last_time_ns(), before);
    QVERIFY(writer->next_seq().at(0) < 1000000);
  }

  void n_that_no_event_records_is_refused_at_resume() {
    const auto dir = fresh();
    {
      WatchedHost host("micro_ms=5", dir, {.updates = 1000});
      VERIFY_STORY(host.wait_for<Update>());
      host.stop();
      VERIFY_STORY(host.ends("stopped", 130));
    }
    std::string plan = text_of(dir / "plan.json");
    plan.erase(plan.find(",\n  \"sha256\""), plan.rfind('\n') - 2 - plan.find(",\n  \"sha256\""));  // as an older one
    write(dir / "plan.json", plan);
    replace_in(dir / "plan.json", "\"steps_set\": []", "\"steps_set\": [{\"from\": 2, \"steps\": 7}]");
    EngineHost host(fake_options());
    const auto refused = host.resume(dir);
    VERIFY_REFUSED(refused, "sets N to 7 after update 2, which no event records");
  }

  void a_summary_that_was_changed_is_not_believed_and_said() {
    const auto dir = finished_run();
    replace_in(dir / "summary.json", "\"updates\": 5", "\"updates\": 50");
    const auto run_read = read_run(dir);
    QCOMPARE(run_read->updates, 5);
    QCOMPARE(run_read->state, std::string("finished"));
    const auto shown = run("show", dir);
    QCOMPARE(shown.status, 0);
    QVERIFY2(shown.err.contains("summary.json is damaged or was changed"), qPrintable(shown.err));
    QVERIFY2(shown.out.contains("5 of 5"), qPrintable(shown.out));
  }

  void a_spec_that_was_changed_is_said_by_show_and_compare() {
    const auto dir = finished_run();
    std::ofstream(dir / "spec.toml", std::ios::app) << "# once more\n";
    const QString name = QString::fromStdString(dir.string());
    QVERIFY(run({"show", name}).err.contains("spec.toml was changed"));
    QVERIFY(run({"compare", name, name}).err.contains("spec.toml was changed"));
    const auto json = QJsonDocument::fromJson(run({"show", name, "--json"}).out.toUtf8()).object();
    QVERIFY(json["problems"].toArray().at(0).toString().contains("spec.toml was changed"));
  }

  void a_spec_that_cannot_be_read_is_taken_from_the_plan_and_said() {
    const auto dir = finished_run();
    const auto before = read_run(dir)->spec;
    write(dir / "spec.toml", "accrue = 1\n[model\n");
    const auto after = read_run(dir);
    QVERIFY(after->spec == before);
    QVERIFY(after->problems.front().find("spec.toml cannot be read") != std::string::npos);
  }

  void cut_events_are_said_by_show_and_compare() {
    const auto dir = finished_run();
    const auto size = fs::file_size(dir / "events.jsonl");
    fs::resize_file(dir / "events.jsonl", size / 2);
    const QString name = QString::fromStdString(dir.string());
    const auto shown = run({"show", name});
    QVERIFY2(shown.err.contains("events are missing"), qPrintable(shown.err));
    QVERIFY(run({"compare", name, name}).err.contains("events.jsonl"));
  }

  void a_run_killed_before_its_summary_is_finished_and_gets_it_again() {
    const auto dir = finished_run();
    const auto summary = text_of(dir / "summary.json");
    fs::remove(dir / "summary.json");
    write(dir / ".summary.json.part", "{\"v\":");
    QCOMPARE(read_run(dir)->state, std::string("finished"));
    const auto resumed = run("resume", dir);
    QCOMPARE(resumed.status, 2);
    QVERIFY2(resumed.err.contains("complete"), qPrintable(resumed.err));
    QCOMPARE(QString::fromStdString(text_of(dir / "summary.json")), QString::fromStdString(summary));
    QVERIFY(!fs::exists(dir / ".summary.json.part"));
  }

  void orders_to_a_terminal_are_spelled_out() {
    const auto dir = finished_run();
    const std::string name = "\x1b]0;owned\x07";
    write(dir / "spec.toml", "accrue = 1\n[run]\nname = \"\\u001b]0;owned\\u0007\"\n");
    QCOMPARE(read_run(dir)->name, name);
    const auto shown = run("show", dir);
    QCOMPARE(shown.status, 0);
    QVERIFY2(!shown.out.contains(QChar(0x1b)) && shown.out.contains("\\x1b]0;owned\\x07"), qPrintable(shown.out));
  }

  void a_folder_without_a_name_is_refused_in_words() {
    for (const char* verb : {"show", "resume", "attach", "stop"}) {
      const auto outcome = run(verb, "");
      QCOMPARE(outcome.status, 2);
      QVERIFY2(outcome.err.contains("no folder is named"), qPrintable(outcome.err));
    }
  }

  void output_that_does_not_arrive_is_a_disk_error_data() {
    const Rows<QStringList> row;
    const auto dir = QString::fromStdString(finished_run().string());
    const QString spec = dir + "/spec.toml";
    row("plan", {"plan", spec});
    row("plan --json", {"plan", spec, "--json"});
    row("trace", {"trace", spec});
    row("spec", {"spec", "--defaults"});
    row("show", {"show", dir});
    row("compare", {"compare", dir, dir});
  }
  void output_that_does_not_arrive_is_a_disk_error() {
    const auto [arguments] = current_row<QStringList>();
    QCOMPARE(run(arguments).status, 0);
    const auto lost = run(arguments, "/dev/full");
    QCOMPARE(lost.status, 5);
    QVERIFY2(lost.err.contains("standard output"), qPrintable(lost.err));
  }

  void a_socket_whose_path_is_too_long_lies_in_a_shorter_folder() {
    const auto runtime = home_.path() / std::string(100, 'r');
    fs::create_directories(runtime);
    qputenv("XDG_RUNTIME_DIR", runtime.c_str());
    const auto dir = fresh();
    WatchedHost host("micro_ms=5", dir, {.updates = 100000});
    VERIFY_STORY(host.wait_for<Update>());
    const auto stopped = run("stop", dir);
    home_.take_over();
    QVERIFY2(stopped.status == 0, qPrintable(stopped.err));
    VERIFY_STORY(host.ends("stopped", 130));
  }

  void sockets_of_killed_supervisors_are_cleared_and_live_ones_kept() {
    const auto folder = home_.path() / "runtime" / "accrue";
    fs::create_directories(folder);
    const auto bind_at = [](const fs::path& path) {
      const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
      if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 4) != 0)
        qFatal("%s cannot be bound", path.c_str());
      return fd;
    };
    ::close(bind_at(folder / "dead.sock"));
    const int live = bind_at(folder / "live.sock");
    const auto dir = finished_run();
    QVERIFY(!fs::exists(folder / "dead.sock"));
    QVERIFY(fs::exists(folder / "live.sock"));
    ::close(bind_at(folder / "dead.sock"));
    const auto refused = ask_run(dir, {HostVerb::pause});  // a caller that finds no supervisor also cleans up
    QVERIFY2(!refused && refused.error().hint.find("resume") == std::string::npos, refused.error().text().c_str());
    QVERIFY(!fs::exists(folder / "dead.sock"));
    QVERIFY(fs::exists(folder / "live.sock"));
    ::close(live);
    fs::remove(folder / "live.sock");
  }

  void a_run_whose_name_is_a_path_reaches_no_socket() {
    const auto dir = finished_run();
    replace_in(dir / "plan.json", "\"run_id\": \"", "\"run_id\": \"../../victim/");
    const auto resumed = run("resume", dir);
    QVERIFY2(resumed.err.contains("is not a run's name"), qPrintable(resumed.err));
    QCOMPARE(resumed.status, 5);
    QVERIFY(!fs::exists(home_.path() / "victim"));
  }
};

ACCRUE_TEST_MAIN(TestRunRecord)

}  // namespace test_run_record
#include "test_run_record.moc"
