// SPDX-License-Identifier: Apache-2.0
// Failures of save_state() and load_state(): a folder belongs to one save, and a load changes all or nothing.
#include <ATen/CPUGeneratorImpl.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>

#include "support/accelerate_cases.h"
#include "support/rank_harness.h"
#include "support/refusals.h"

namespace test_accelerate_state {

using namespace accrue;
using namespace accrue::test;

namespace {

/// Its second save fails after the model's file has been written.
struct FailsToSave final : OptimizerWrapper {
  explicit FailsToSave(torch::optim::Optimizer& optimizer) : OptimizerWrapper(optimizer) {}
  StateDict state_dict() const override {
    if (fails) throw std::runtime_error("the state cannot be had");
    return OptimizerWrapper::state_dict();
  }
  void load_state_dict(const StateDict& state) override {
    if (refuses) throw std::invalid_argument("the state does not fit");
    OptimizerWrapper::load_state_dict(state);
  }
  bool fails = false;
  bool refuses = false;
};

QStringList names_in(const QTemporaryDir& folder) {
  return QDir(folder.path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
}

constexpr int save_failed = 7;

/// Saves 2 into the folder that is named.
int saves(RankContext& rank) {
  const auto axis = single_communicator();
  OriginLine model(2.0);
  Accelerator accelerator({}, *axis);
  accelerator.prepare(model);
  const auto saved = accelerator.save_state(rank.arguments.at(0));
  if (!saved) rank.report(saved.error().text());
  return saved ? 0 : save_failed;
}

}  // namespace

class TestAccelerateState : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_save_that_fails_leaves_the_last_one_whole() {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    const auto axis = single_communicator();
    OriginLine model;
    torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.1));
    const auto optimizer = std::make_shared<FailsToSave>(sgd);
    Accelerator accelerator({}, *axis);
    accelerator.prepare(model);
    accelerator.prepare(optimizer);
    const auto set = [&](double value) {
      const at::NoGradGuard no_grad;
      model.w.fill_(value);
    };
    set(1.0);
    accelerator.save_state(path).value();
    QFile own(QString::fromStdString(path) + QStringLiteral("/notes.txt"));
    QVERIFY(own.open(QIODevice::WriteOnly));
    own.close();
    set(2.0);
    optimizer->fails = true;
    const auto saved = accelerator.save_state(path);
    QVERIFY(!saved);
    QVERIFY2(saved.error().text().find("cannot be had") != std::string::npos, saved.error().text().c_str());
    optimizer->fails = false;
    accelerator.load_state(path).value();
    QCOMPARE(model.value(), 1.0);
    set(3.0);
    accelerator.save_state(path).value();
    set(0.0);
    accelerator.load_state(path).value();
    QCOMPARE(model.value(), 3.0);
    QVERIFY(own.exists());  // what is the program's stays in the folder
    QCOMPARE(names_in(folder), QStringList{QStringLiteral("state")});
  }

  /// In a process of its own, at some of its file calls.
  void a_save_that_fails_or_is_killed_loses_no_file_data() {
    QTest::addColumn<QString>("how");
    QTest::addColumn<QString>("exchange");
    for (const char* how : {"EIO", "KILL"})
      for (const char* exchange : {"by one call", "none"}) QTest::addRow("%s, %s", how, exchange) << how << exchange;
  }
  void a_save_that_fails_or_is_killed_loses_no_file() {
    QFETCH(QString, how);
    QFETCH(QString, exchange);
    namespace fs = std::filesystem;
    QTemporaryDir folder;
    QTemporaryDir logs;
    const fs::path path = folder.filePath(QStringLiteral("state")).toStdString();
    const auto axis = single_communicator();
    OriginLine model;
    Accelerator accelerator({}, *axis);
    accelerator.prepare(model);
    const auto save = [&](double value) {
      {
        const at::NoGradGuard no_grad;
        model.w.fill_(value);
      }
      accelerator.save_state(path).value();
    };
    const auto loaded = [&] {
      accelerator.load_state(path).value();
      return model.value();
    };
    const auto save_elsewhere = [&](int call) {
      const std::string log = logs.filePath(QString::number(call)).toStdString();
      RankGroup process("saves", 1,
                        {.arguments = {path.string()},
                         .environment = {{"FAILING_DISK_HOW", how.toStdString()},
                                         {"FAILING_DISK_EXCHANGE", exchange.toStdString()},
                                         {"FAILING_DISK_CALL", std::to_string(call)},
                                         {"FAILING_DISK_PATH", folder.path().toStdString()},
                                         {"FAILING_DISK_LOG", log}}});
      return process.finish().front();
    };
    save(1.0);
    fs::create_directories(path / "plots" / "1");
    QFile own(QString::fromStdString(path / "notes.txt"));
    QVERIFY(own.open(QIODevice::WriteOnly));
    own.close();
    const RankOutcome whole = save_elsewhere(0);
    QVERIFY2(whole.ok(), whole.text().c_str());
    QCOMPARE(loaded(), 2.0);
    QFile log(logs.filePath(QStringLiteral("0")));
    QVERIFY(log.open(QIODevice::ReadOnly));
    const auto calls = static_cast<int>(log.readAll().count('\n'));
    QVERIFY(calls > 15);
    for (int call = 2; call <= calls; call += calls / 10) {
      save(1.0);
      const RankOutcome outcome = save_elsewhere(call);
      const std::string which = "call " + std::to_string(call) + " " + outcome.text();
      if (how == QStringLiteral("KILL")) QVERIFY2(outcome.signal == SIGKILL, which.c_str());
      if (outcome.exit_status == save_failed)
        QVERIFY2(outcome.lines.front().find("Input/output error") != std::string::npos, which.c_str());
      else
        QVERIFY2(outcome.ok() || outcome.signal == SIGKILL, which.c_str());
      const double value = loaded();
      QVERIFY2(value == 2.0 || (value == 1.0 && !outcome.ok()), which.c_str());
      // The load has brought back what the program had put there, and nothing lies beside the folder.
      QVERIFY2(own.exists() && fs::exists(path / "plots" / "1"), which.c_str());
      QCOMPARE(names_in(folder), QStringList{QStringLiteral("state")});
      save(3.0);
      QCOMPARE(loaded(), 3.0);
      QVERIFY2(own.exists() && fs::exists(path / "plots" / "1"), which.c_str());
      QCOMPARE(names_in(folder), QStringList{QStringLiteral("state")});
    }
  }

  /// The lock is that of another process's save; the load of this one takes what is there, and leaves the rest.
  void a_load_clears_nothing_while_another_process_saves() {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    const auto axis = single_communicator();
    OriginLine model(1.0);
    Accelerator accelerator({}, *axis);
    accelerator.prepare(model);
    accelerator.save_state(path).value();
    QVERIFY(QDir(folder.path()).mkdir(QStringLiteral(".state.part")));
    const int saving = ::open(folder.path().toUtf8().constData(), O_RDONLY | O_DIRECTORY);
    QCOMPARE(::flock(saving, LOCK_SH), 0);
    accelerator.load_state(path).value();
    QCOMPARE(names_in(folder), (QStringList{QStringLiteral(".state.part"), QStringLiteral("state")}));
    ::close(saving);
    accelerator.load_state(path).value();
    QCOMPARE(names_in(folder), QStringList{QStringLiteral("state")});
  }

  void a_load_that_fails_changes_nothing() {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    const auto axis = single_communicator();
    OriginLine model;
    torch::optim::SGD first(model.parameters(), torch::optim::SGDOptions(0.1));
    torch::optim::SGD second(model.parameters(), torch::optim::SGDOptions(0.2));
    const auto refusing = std::make_shared<FailsToSave>(second);
    Accelerator accelerator({}, *axis);
    accelerator.prepare(model);
    accelerator.prepare(first);
    accelerator.prepare(refusing);
    accelerator.save_state(path).value();
    const at::NoGradGuard no_grad;
    model.w.fill_(7.0);
    set_learning_rates(first, {0.5});
    const auto axis_state = at::detail::getDefaultCPUGenerator().get_state();
    refusing->refuses = true;
    // Putting the others back must not ask the one that refuses.
    QVERIFY(!accelerator.load_state(path));
    QCOMPARE(model.value(), 7.0);
    QCOMPARE(learning_rates(first).at(0), 0.5);
    QVERIFY(at::equal(axis_state, at::detail::getDefaultCPUGenerator().get_state()));
  }

  void a_load_that_fails_leaves_the_scaler_as_it_was() {
    QTemporaryDir folder;
    const std::string path = folder.filePath(QStringLiteral("state")).toStdString();
    const auto axis = single_communicator();
    OriginLine model;
    torch::optim::SGD first(model.parameters(), torch::optim::SGDOptions(0.5));
    torch::optim::SGD second(model.parameters(), torch::optim::SGDOptions(0.0));
    const auto refusing = std::make_shared<FailsToSave>(second);
    Accelerator accelerator({.mixed_precision = MixedPrecision::fp16, .grad_scaler = {.init_scale = 1024.0}}, *axis);
    accelerator.prepare(model);
    AcceleratedOptimizer& optimizer = accelerator.prepare(first);
    auto scheduler = std::make_shared<LambdaLR>(first, [](std::int64_t) { return 1.0; });
    accelerator.prepare(scheduler);
    accelerator.save_state(path).value();
    accelerator.backward(model.loss(points({1.0})));  // d(w - 2)^2 at 0: -4
    accelerator.unscale_gradients(&optimizer);
    accelerator.prepare(refusing);
    QVERIFY(!accelerator.load_state(path));  // nothing was saved of the second
    QCOMPARE(optimizer.step(), StepOutcome::updated);
    QCOMPARE(model.value(), 2.0);  // the gradient was divided by the scale once
  }

  void an_archive_where_the_state_should_be_is_not_read() {
    OriginLine model;
    torch::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.1));
    const auto optimizer = wrap(sgd);
    const std::string zip("PK\003\004 data.pkl");
    at::Tensor bytes = at::empty({static_cast<std::int64_t>(zip.size())}, at::kByte);
    std::copy(zip.begin(), zip.end(), static_cast<char*>(bytes.mutable_data_ptr()));
    const std::string error = error_of([&] { optimizer->load_state_dict({{"optimizer", bytes}}); });
    QVERIFY2(error.find("no entries under \"optimizer.\"") != std::string::npos, error.c_str());
  }

  void a_results_value_says_the_errors_text() {
    const auto axis = single_communicator();
    Accelerator accelerator({}, *axis);
    const auto loaded = accelerator.load_state("/nowhere/at/all");
    QVERIFY(!loaded);
    const std::string error = error_of([&] { loaded.value(); });
    QCOMPARE(error, loaded.error().text());
    QVERIFY2(error.find("/nowhere/at/all") != std::string::npos, error.c_str());
  }
};

ACCRUE_RANK_TEST_MAIN(TestAccelerateState, {{"saves", saves}})

}  // namespace test_accelerate_state
#include "test_accelerate_state.moc"
