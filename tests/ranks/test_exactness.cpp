// SPDX-License-Identifier: Apache-2.0
// The lamp: every bug of the gallery is found, for the right reason; runs without one are never accused.
#include <QTest>

#include <map>
#include <tuple>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/whatif/bug_gallery.h"
#include "accrue/train/trainer.h"
#include "support/inline_data.h"
#include "support/joined_rank.h"
#include "support/table.h"
#include "support/training_body.h"

namespace test_exactness {

using namespace accrue;
using namespace accrue::test;

namespace {

/// Ragged sequences, so that samples, tokens and micro-steps are three different counts; 22 of them in pairs on two
/// ranks make a short window at the end of each epoch, whose last batch is short too.
std::string ragged(const std::string& rest, int samples = 21) {
  const auto length = [](int i) { return (i * 5) % 7 + 1; };
  return "accrue = 1\n[model]\nkind = \"linear\"\noutputs = 3\nloss = \"cross_entropy\"\ndtype = \"float64\"\n"
         "[data]\nkind = \"inline\"\nsequences = " +
         lists(samples, length, [](int i, int t) { return (i * 7 + t * 3) % 9 - 4 + 0.5; }) +
         "\nlabels = " + lists(samples, length, [](int i, int t) { return (i + t) % 3; }) +
         "\n[optimizer]\nkind = \"sgd\"\nlr = 0.05\n[accumulation]\nsteps = 4\nmicro_batch = 2\n[parallel]\ndata = 2\n"
         "[evaluate]\nexactness_every = 1\n" +
         rest;
}

std::string table(const std::string& rest) {
  return "accrue = 1\n[model]\nkind = \"mlp\"\ninputs = 3\noutputs = 2\nhidden = [5]\ndtype = \"float64\"\n"
         "[data]\nkind = \"synthetic\"\nsamples = 44\n[optimizer]\nkind = \"sgd\"\nlr = 0.05\n"
         "[accumulation]\nsteps = 4\nmicro_batch = 2\n[parallel]\ndata = 2\n[evaluate]\nexactness_every = 1\n" +
         rest;
}

const std::string epoch = "[run]\nepochs = 1\n";

std::string bug(const char* name) {
  return epoch + "[teaching]\nbug = \"" + std::string(name) + "\"\n";
}

QString accusations(const std::vector<ExactnessCheck>& checks) {
  QStringList all;
  for (const ExactnessCheck& check : checks)
    if (check.verdict != "exact" || !check.reason.empty())
      all << QString("%1 %2 %3").arg(check.update).arg(check.verdict.c_str(), check.reason.c_str());
  return all.join('\n');
}

/// Keeps the checks of a run and lets it run.
class CheckRecorder final : public RankChannel {
 public:
  void send(EventBody body) override {
    if (auto* check = std::get_if<ExactnessCheck>(&body)) checks.push_back(std::move(*check));
  }
  void progress(const char*, std::int64_t, std::int64_t) override {}
  Gate before_micro_step(std::int64_t, const std::function<void()>&) override { return {}; }
  BoundaryRequests boundary_requests() override { return {}; }
  void hold_here() override {}
  void close() override {}
  std::vector<ExactnessCheck> checks;
};

std::map<CollectivePurpose, int> calls_by_purpose(const TrainedRank& rank) {
  std::map<CollectivePurpose, int> calls;
  for (const Sync& sync : rank.all<Sync>())
    for (const CollectivePurpose purpose : sync.purpose) ++calls[purpose];
  return calls;
}

int reductions_of(const TrainedRank& rank) {
  int count = 0;
  for (const Sync& sync : rank.all<Sync>())
    for (std::size_t i = 0; i < sync.op.size(); ++i)
      count += reduces_gradients(sync.purpose[i], sync.axis[i], sync.op[i]) ? 1 : 0;
  return count;
}

/// One run after another on the same ranks: the spec's dialects and models, with seed after seed.
int many_seeds(RankContext& rank) {
  const JoinedRank joined = join_ranks(rank, BackendKind::shm);
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, RankGrid{.data = rank.world}));
  const std::int64_t seeds = std::stoll(rank.arguments.at(0));
  std::int64_t checked = 0;
  for (std::int64_t seed = 0; seed < seeds; ++seed) {
    const std::string run = "[run]\nepochs = 1\nseed = " + std::to_string(seed) + "\n";
    const RunOrder order = order_for({.spec = seed % 2 ? ragged(run, 16 + static_cast<int>(seed % 9)) : table(run)});
    CheckRecorder recorder;
    const auto outcome = train_run(order, mesh, 0, recorder);
    if (!outcome) rank.report("failed " + outcome.error().text());
    if (const QString accused = accusations(recorder.checks); !accused.isEmpty())
      rank.report("accused seed " + std::to_string(seed) + ": " + accused.toStdString());
    checked += std::ssize(recorder.checks);
  }
  mesh.world().barrier();
  rank.report("checked " + std::to_string(checked));
  return 0;
}

}  // namespace

class TestExactness : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_exactness_check_is_not_counted_as_a_gradient_reduction() {
    const auto checked = train({.spec = table(epoch)}, 2);
    const auto unchecked = train({.spec = table(epoch), .set = {"evaluate.exactness_every=0"}}, 2);
    VERIFY_FINISHED(checked);
    const auto updates = std::ssize(checked[0].all<Update>());
    QVERIFY(updates > 1);
    QCOMPARE(std::ssize(checked[0].all<ExactnessCheck>()), updates);
    for (std::size_t rank : {0, 1}) {
      QCOMPARE(reductions_of(checked[rank]), static_cast<int>(updates));
      auto with = calls_by_purpose(checked[rank]);
      QVERIFY(with[CollectivePurpose::check] >= updates);
      QCOMPARE(with[CollectivePurpose::unknown], 0);
      // Everything that it adds is distinguished.
      with.erase(CollectivePurpose::check);
      with.erase(CollectivePurpose::unknown);
      QCOMPARE(with, calls_by_purpose(unchecked[rank]));
    }
    QCOMPARE(checked[0].weights_sha256, unchecked[0].weights_sha256);
  }

  void a_normaliser_of_samples_is_named_on_data_that_count_tokens() {
    const auto ranks = train({.spec = ragged(epoch), .set = {"accumulation.normalizer=samples"}}, 2);
    QVERIFY2(ranks[0].outcome == "finished", ranks[0].text().c_str());
    const auto checks = ranks[0].all<ExactnessCheck>();
    QVERIFY(!checks.empty());
    for (const ExactnessCheck& check : checks) {
      QCOMPARE(check.verdict, std::string("not"));
      QCOMPARE(check.reason, std::string("weighed_by_samples"));
    }
  }

  void every_bug_of_the_gallery_is_found_for_its_reason_data() {
    const Rows<std::string, QString, QString> row;
    for (const auto& [bug, verdict, reason] : std::initializer_list<std::tuple<Bug, const char*, const char*>>{
             {Bug::mean_of_means, "not", "mean_of_means"},
             {Bug::no_division, "not", "divisor"},
             {Bug::tail_by_steps, "not", "tail_policy"},
             {Bug::no_sync_off_by_one, "not", "ranks_differ"},
             {Bug::no_sync_backward_only, "exact", "wasted_reductions"},
             {Bug::no_no_sync, "exact", "wasted_reductions"},
             {Bug::clip_every_micro_step, "not", "clipped"},
             {Bug::schedule_per_micro_step, "exact", "schedule_clock"},
             {Bug::batch_norm, "close", "batch_norm"},
             {Bug::skipped_micro_step, "not", "left_out"},
             {Bug::unused_parameters, "not", "part_not_reduced"},
             {Bug::pipeline_sync, "not", "part_not_reduced"},
             {Bug::divide_by_own_size, "not", "own_size"},
             {Bug::repeated_samples, "not", "repeated_samples"},
             {Bug::zero_grad_inside, "not", "cleared"}})
      row(to_name(bug).data(), write_spec(gallery_spec(bug)), verdict, reason);
    row("tail_by_steps of tokens", ragged(bug("tail_by_steps"), 20), "not", "tail_policy");
  }
  void every_bug_of_the_gallery_is_found_for_its_reason() {
    const auto [spec, verdict, reason] = current_row<std::string, QString, QString>();
    TrainingScript script{.spec = spec, .set = {"run.epochs=3"}};
    const auto ranks = train(script, 2);
    VERIFY_FINISHED(ranks);
    std::map<QString, int> found;
    for (const ExactnessCheck& check : ranks[0].all<ExactnessCheck>()) {
      QVERIFY2(!check.reason.empty(), "a run with a bug has no plainly exact window");
      if (check.reason == "bug_idle") continue;
      QCOMPARE(QString::fromStdString(check.reason), reason);
      QCOMPARE(QString::fromStdString(check.verdict), verdict);
      ++found[reason];
    }
    QVERIFY2(found[reason] > 0, accusations(ranks[0].all<ExactnessCheck>()).toUtf8());
    // Without the bug the same run is exact throughout.
    script.set.push_back("teaching.bug=none");
    const auto clean = train(script, 2);
    QVERIFY(!clean[0].all<ExactnessCheck>().empty());
    QCOMPARE(accusations(clean[0].all<ExactnessCheck>()), QString());
    // A bug that changes more than the cost changes the weights, and the fix restores them.
    if (reason != "wasted_reductions") QVERIFY(ranks[0].weights_sha256 != clean[0].weights_sha256);
  }

  void a_dialects_own_arithmetic_is_named_where_it_is_not_exact_data() {
    const Rows<QString, QString> row;
    row("llm: windows cross epochs, and items weigh as micro-steps do", "llm", "mean_of_means");
    row("accelerate: its short window too", "accelerate", "tail_policy");
    row("mmengine: its short window is divided by what it has", "mmengine", "mean_of_means");
  }
  void a_dialects_own_arithmetic_is_named_where_it_is_not_exact() {
    const auto [dialect, found] = current_row<QString, QString>();
    const auto ranks = train({.spec = ragged(epoch, 22), .set = {"accumulation.dialect=" + dialect.toStdString()}}, 2);
    const auto checks = ranks[0].all<ExactnessCheck>();
    QVERIFY2(!checks.empty(), ranks[0].text().c_str());
    for (const ExactnessCheck& check : checks) QCOMPARE(check.verdict, std::string("not"));
    QCOMPARE(QString::fromStdString(checks.back().reason), found);
  }

  void dropout_is_close_and_not_accused() {
    const std::string spec =
        "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 8\nvocabulary = 24\n"
        "dropout = 0.2\n[data]\nkind = \"synthetic\"\nsamples = 24\n[accumulation]\nsteps = 3\nmicro_batch = 2\n"
        "[parallel]\ndata = 2\n[run]\nupdates = 2\n[evaluate]\nexactness_every = 1\n";
    const auto ranks = train({.spec = spec}, 2);
    const auto checks = ranks[0].all<ExactnessCheck>();
    QCOMPARE(checks.size(), std::size_t{2});
    for (const ExactnessCheck& check : checks) {
      QCOMPARE(check.verdict, std::string("close"));
      QCOMPARE(check.reason, std::string("dropout"));
    }
  }

  void checking_changes_no_bit_of_the_run() {
    const auto weights = [](const char* checks) {
      return train({.spec = ragged(epoch), .set = {checks}}, 2)[0].weights_sha256;
    };
    QCOMPARE(weights("evaluate.exactness_every=1"), weights("evaluate.exactness_every=0"));
  }

  void correct_runs_are_never_accused_on_two_hundred_seeds() {
    RankGroup group("many_seeds", 2, {.arguments = {"200"}});
    const auto outcomes = group.finish(std::chrono::seconds(240));
    ACCRUE_ALL_RANKS_OK(outcomes);
    std::int64_t checked = 0;
    for (const std::string& line : outcomes[0].lines) {
      if (!line.starts_with("checked ")) QFAIL(line.c_str());
      checked = std::stoll(line.substr(8));
    }
    QVERIFY(checked > 200);
  }
};

ACCRUE_RANK_TEST_MAIN(TestExactness, {{"train", train_body}, {"many_seeds", many_seeds}})

}  // namespace test_exactness
#include "test_exactness.moc"
