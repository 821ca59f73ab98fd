// SPDX-License-Identifier: Apache-2.0
// Inheritance of a started process, and detection of its end.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QTest>
#include <cerrno>
#include <fstream>
#include <string>

#include "accrue/run/process/child_process.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_child_process {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;
using Group = ProcessStart::Group;

namespace {

ProcessStart shell(const std::string& script) {
  return {.what = "the shell", .command = {"/bin/sh", "-c", script}};
}

/// Returns the process's output, without the end of the last line.
std::string printed(ProcessStart how) {
  auto pipe = pipe_to_read("no pipe");
  how.give(pipe->theirs, STDOUT_FILENO);
  auto process = start_process(std::move(how));
  if (!process) return process.error().text();
  pipe->theirs.reset();
  std::string text;
  char bytes[512];
  for (ssize_t count = 0; (count = ::read(pipe->ours.get(), bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  process->wait();
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

bool exists(pid_t pid) {
  return ::kill(pid, 0) == 0 || errno != ESRCH;
}

}  // namespace

class TestChildProcess : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_process_has_the_descriptors_that_it_is_given() {
    const OwnedFd open(::open("/dev/null", O_RDONLY));  // inherited, as O_CLOEXEC is missing
    const auto socket = socket_pair("no socket");
    ProcessStart how = shell("for n in 3 4 5 6 7 8 9; do test ! -e /proc/self/fd/$n || echo $n; done");
    how.give(socket->theirs, 7);
    how.mute({STDIN_FILENO});
    QCOMPARE(printed(how), std::string("7"));
    // Also if one of our numbers is a different one in the child.
    how = shell("readlink /proc/self/fd/3 /proc/self/fd/4");
    how.files = {{.number = 4, .path = "/dev/zero", .flags = O_RDONLY}, {.number = 3, .path = "/dev/null"}};
    QCOMPARE(printed(how), std::string("/dev/null\n/dev/zero"));
    how = shell("test -e /proc/self/fd/" + std::to_string(open.get()) + " && echo here");
    QCOMPARE(printed(how), std::string());
    how.inherits = true;
    QCOMPARE(printed(how), std::string("here"));
  }

  void an_owned_descriptor_is_closed_once_and_the_reason_of_a_failure_is_kept() {
    OwnedFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int number = first.get();
    OwnedFd second(std::move(first));
    QVERIFY(!first && second.get() == number);
    errno = ENOSPC;
    second = OwnedFd();
    QCOMPARE(errno, ENOSPC);
    QCOMPARE(::fcntl(number, F_GETFD), -1);
    OwnedFd closed(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    QCOMPARE(closed.close(), 0);
    QVERIFY(!closed);
    QCOMPARE(closed.close(), EBADF);
  }

  void two_descriptors_can_change_places() {
    QTemporaryDir folder;
    const auto file = [&](const char* name) {
      const std::string path = folder.filePath(name).toStdString();
      std::ofstream(path) << name;
      return OwnedFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    };
    const OwnedFd first = file("first");
    const OwnedFd second = file("second");
    ProcessStart how = shell("cat <&" + std::to_string(first.get()) + "; cat <&" + std::to_string(second.get()));
    how.give(first, second.get());
    how.give(second, first.get());
    QCOMPARE(printed(how), std::string("secondfirst"));
  }

  void its_variables_are_ours_unless_they_are_named() {
    qputenv("ACCRUE_TEST_CHILD", "ours");
    ProcessStart how = shell("echo $ACCRUE_TEST_CHILD$OTHER");
    QCOMPARE(printed(how), std::string("ours"));
    how.variables = {"OTHER=theirs"};
    QCOMPARE(printed(how), std::string("theirs"));
    qunsetenv("ACCRUE_TEST_CHILD");
  }

  void its_group_and_session_are_as_requested_data() {
    const Rows<int, bool, bool> row;  // a group of its own, a session of its own
    row("ours", int(Group::ours), false, false);
    row("own", int(Group::own), true, false);
    row("session", int(Group::session), true, true);
  }
  void its_group_and_session_are_as_requested() {
    const auto [group, own_group, own_session] = current_row<int, bool, bool>();
    ProcessStart how = shell("read line");
    how.group = static_cast<Group>(group);
    const auto pipe = pipe_to_write("no pipe");
    how.give(pipe->theirs, STDIN_FILENO);
    const auto process = start_process(how);
    QVERIFY(process.has_value());
    QCOMPARE(::getpgid(process->pid()), own_group ? process->pid() : ::getpgid(0));
    QCOMPARE(::getsid(process->pid()), own_session ? process->pid() : ::getsid(0));
  }

  void its_end_is_told_data() {
    const Rows<std::string, int, int> row;  // signal, exit status
    row("in order", "exit 0", 0, 0);
    row("with a status", "exit 7", 0, 7);
    row("by a signal", "kill -TERM $$", SIGTERM, 0);
  }
  void its_end_is_told() {
    const auto [script, signal, status] = current_row<std::string, int, int>();
    auto waited = start_process(shell(script));
    const ExitReport end = waited->wait();
    QCOMPARE(end.signal, signal);
    QCOMPARE(end.status, status);
    QVERIFY(!waited->running() && !waited->reap());
    auto polled = start_process(shell(script));
    std::optional<ExitReport> report;
    QTRY_VERIFY(report || (report = polled->reap()));
    QCOMPARE(report->status, status);
  }

  // As after trap "" CHLD in the shell that started us.
  void its_end_is_told_to_a_parent_that_ignored_ends() {
    ::signal(SIGCHLD, SIG_IGN);
    QCOMPARE(start_process(shell("exit 7"))->wait().status, 7);
    // An exit that another waiter has collected does not count as success.
    auto taken = start_process(shell("exit 0"));
    QCOMPARE(::waitpid(taken->pid(), nullptr, 0), taken->pid());
    QCOMPARE(taken->wait().status, 1);
  }

  void what_it_leaves_in_its_group_is_killed_with_its_end() {
    const auto pipe = pipe_to_read("no pipe");
    ProcessStart how = shell("sleep 600 & echo $!");
    how.give(pipe->theirs, STDOUT_FILENO);
    auto process = start_process(how);
    char bytes[32]{};
    QVERIFY(::read(pipe->ours.get(), bytes, sizeof bytes - 1) > 0);
    process->wait();
    QTRY_VERIFY(!exists(std::stoi(bytes)));
  }

  void an_owner_that_goes_kills_it_unless_it_lets_it_go() {
    pid_t killed = 0;
    pid_t alive = 0;
    const auto pipe = pipe_to_write("no pipe");
    {
      ProcessStart how = shell("read line");
      how.give(pipe->theirs, STDIN_FILENO);
      const auto first = start_process(how);
      auto second = start_process(how);
      killed = first->pid();
      alive = second->pid();
      second->let_go();
    }
    QVERIFY(!exists(killed));
    QVERIFY(exists(alive));
    ::kill(alive, SIGKILL);
    QCOMPARE(::waitpid(alive, nullptr, 0), alive);
  }

  void what_cannot_start_is_named_data() {
    const Rows<std::string, std::string> row;
    row("missing", {}, "the tool cannot be started: No such file or directory");
    row("no program", "no first line\n", "the tool cannot be started: Exec format error");
  }
  void what_cannot_start_is_named() {
    const auto [text, message] = current_row<std::string, std::string>();
    QTemporaryDir folder;
    const std::string file = folder.filePath("tool").toStdString();
    if (!text.empty()) {
      std::ofstream(file) << text;
      QFile::setPermissions(folder.filePath("tool"), QFile::ReadOwner | QFile::ExeOwner);
    }
    const auto refused = start_process({.what = "the tool", .command = {file}});
    VERIFY_FAILS(refused, ErrorCode::device, message);
    QCOMPARE(refused.error().where, file);
    QCOMPARE(refused.error().hint.find("interpreter") != std::string::npos, !text.empty());
  }
};

ACCRUE_TEST_MAIN(TestChildProcess)

}  // namespace test_child_process
#include "test_child_process.moc"
