// SPDX-License-Identifier: Apache-2.0
// The capability matrix against preflight, pair by pair; what switches write; what a card says it costs.
#include <QTest>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/whatif/plugins.h"
#include "support/test_program.h"

namespace test_plugins {

using namespace accrue;

namespace {

HostFacts plain_host() {
  HostFacts host;
  host.cores = 64;
  host.memory_bytes = std::int64_t{64} << 30;
  host.avx512_bf16 = true;
  return host;
}

/// Can be divided by two along each axis, and has fewer than 1,000 parameters.
RunSpec small_gpt() {
  RunSpec spec;
  spec.model.layers = 2;
  spec.model.width = 4;
  spec.model.heads = 2;
  spec.model.context = 8;
  spec.model.vocabulary = 16;
  return spec;
}

RunSpec large_linear() {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.model.inputs = 1024;
  spec.model.bias = false;
  return spec;
}

std::vector<Finding> findings_of(const RunSpec& spec) {
  return preflight_files(spec, plain_host(), ".").findings;
}

/// With a capability, and with what it needs.
RunSpec with(RunSpec spec, Capability capability) {
  for (const CapabilityRule& rule : capability_rules())
    if (rule.plugin == capability && rule.relation == Relation::needs)
      spec = with_settings(spec, settings_on(rule.other, spec));
  return with_settings(spec, settings_on(capability, spec));
}

bool says(const std::vector<Finding>& findings, Severity severity, const CapabilityRule& rule) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    return finding.severity == severity && (finding.key + " " + finding.message).ends_with(rule.text());
  });
}

std::string texts(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& finding : findings) all += finding.text() + "\n";
  return all;
}

PluginComparison compare(const RunSpec& spec) {
  return compare_plugins(spec, plain_host(), scan_data(spec, ".").value(), ".");
}

const PluginState& state_of(const PluginComparison& comparison, Capability plugin) {
  return comparison.plugins.at(static_cast<std::size_t>(plugin));
}

}  // namespace

class TestPlugins : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_pair_is_refused_exactly_where_the_matrix_excludes_it_data() {
    QTest::addColumn<int>("one");
    QTest::addColumn<int>("other");
    for (const Capability one : all_plugins())
      for (const Capability other : all_capabilities)
        if (one < other)
          QTest::newRow((std::string(to_string(one)) + " and " + std::string(to_string(other))).c_str())
              << static_cast<int>(one) << static_cast<int>(other);
  }
  void each_pair_is_refused_exactly_where_the_matrix_excludes_it() {
    QFETCH(int, one);
    QFETCH(int, other);
    const auto left = static_cast<Capability>(one), right = static_cast<Capability>(other);
    const RunSpec spec = with(with(small_gpt(), left), right);
    QVERIFY(is_on(left, spec) && is_on(right, spec));
    const std::vector<Finding> findings = findings_of(spec);
    const CapabilityRule* rule = rule_between(left, right);
    const bool excluded = rule && rule->relation == Relation::excludes;
    QVERIFY2(has_errors(findings) == excluded, texts(findings).c_str());
    if (excluded) QVERIFY2(says(findings, Severity::error, *rule), texts(findings).c_str());
  }

  void what_a_plugin_needs_is_what_preflight_misses() {
    int needs = 0;
    for (const CapabilityRule& rule : capability_rules()) {
      if (rule.relation != Relation::needs) continue;
      ++needs;
      const RunSpec alone = with_settings(small_gpt(), settings_on(rule.plugin, small_gpt()));
      QVERIFY2(says(findings_of(alone), Severity::warning, rule), rule.text().c_str());
      QVERIFY2(!says(findings_of(with(small_gpt(), rule.plugin)), Severity::warning, rule), rule.text().c_str());
      QCOMPARE(state_of(compare(small_gpt()), rule.plugin).locked, rule.text());
    }
    QCOMPARE(needs, 2);
  }

  void a_switch_writes_its_own_keys_and_takes_them_back() {
    for (const Capability plugin : all_plugins()) {
      const RunSpec before = small_gpt();
      const RunSpec on = switched(before, plugin);
      QVERIFY(!is_on(plugin, before) && is_on(plugin, on));
      const std::vector<SpecDifference> differences = diff_specs(before, on);
      QCOMPARE(differences.size(), std::size_t{1});
      QCOMPARE(differences.front().key, std::string(keys_of(plugin).front()));
      QVERIFY2(switched(on, plugin) == before, std::string(to_string(plugin)).c_str());
    }
  }

  void what_has_no_meaning_without_a_plugin_goes_with_it() {
    RunSpec spec = with(with(small_gpt(), Capability::sequence), Capability::zero);
    spec.parallel.overlap_param_gather = true;
    spec = switched(switched(spec, Capability::tensor), Capability::data);
    QVERIFY(!is_on(Capability::sequence, spec) && !is_on(Capability::zero, spec));
    QVERIFY(spec == small_gpt());
    spec = with(with(spec, Capability::pipeline), Capability::recompute);
    spec.parallel.virtual_pipeline = 2;
    spec.parallel.pipeline_order = PipelineOrder::all_forward;
    spec.parallel.pipeline_group = 4;
    spec.parallel.recompute_method = RecomputeMethod::block;
    spec.parallel.recompute_layers = 2;
    QVERIFY(switched(switched(spec, Capability::recompute), Capability::pipeline) == small_gpt());
  }

  void attention_is_recomputed_only_where_it_keeps_its_weights() {
    RunSpec spec = small_gpt();
    QCOMPARE(switched(spec, Capability::recompute).parallel.recompute, RecomputeKind::full);
    spec.model.dropout = 0.1;
    QCOMPARE(switched(spec, Capability::recompute).parallel.recompute, RecomputeKind::selective);
  }

  void a_degree_is_the_smallest_that_divides_the_model() {
    RunSpec spec;
    spec.model.heads = 15;
    spec.model.width = 15;
    spec.model.vocabulary = 250;  // 3 divides the heads alone
    spec.model.layers = 35;
    QCOMPARE(switched(spec, Capability::tensor).parallel.tensor, 5);
    QCOMPARE(switched(spec, Capability::pipeline).parallel.pipeline, 5);
  }

  void a_model_that_no_degree_divides_locks_the_switch_with_the_reason() {
    RunSpec spec;
    spec.model.heads = 1;
    const PluginState tensor = state_of(compare(spec), Capability::tensor);
    QCOMPARE(tensor.locked, std::string("parallel.tensor cannot divide this model: model.heads 1 is not a multiple of "
                                        "parallel.tensor 2"));
    QVERIFY(!tensor.difference.has_value());
  }

  void a_plugin_that_is_on_and_refused_says_why() {
    RunSpec spec = small_gpt();
    spec.parallel.pipeline = 2;
    spec.evaluate.exactness_every = 5;
    const PluginComparison comparison = compare(spec);
    QVERIFY(!comparison.now.has_value());
    QCOMPARE(state_of(comparison, Capability::pipeline).fault,
             std::string("evaluate.exactness_every needs an undivided model: parallel.tensor and parallel.pipeline "
                         "must be 1"));
    QCOMPARE(state_of(comparison, Capability::tensor).fault, std::string());
  }

  void costs_and_savings_are_those_of_the_plans() {
    const auto cost = [](const RunSpec& spec) { return cost_of(*preflight_files(spec, plain_host(), ".").plan); };
    // Two ranks that all-reduce 1,024 numbers each send them once.
    const RunSpec one = large_linear(), two = switched(one, Capability::data);
    const PluginState data = state_of(compare(one), Capability::data);
    QVERIFY(!data.on && data.locked.empty());
    QCOMPARE(data.difference->gradients, 0);
    QVERIFY(data.difference->sent(Axis::data) >= 4096);
    QCOMPARE(sent_bytes(*data.difference), sent_bytes(cost(two)) - sent_bytes(cost(one)));
    // Two moments of them are 8,192 bytes a rank. Shared by two, with a copy of the share: 3 x 1,024 x 4 / 2 = 6,144.
    for (const bool on : {false, true}) {
      const PluginComparison comparison = compare(on ? switched(two, Capability::zero) : two);
      const PluginState zero = state_of(comparison, Capability::zero);
      QCOMPARE(zero.on, on);
      QCOMPARE(zero.difference->optimizer, 6144 - 8192);
      QCOMPARE(comparison.now->optimizer, on ? 6144 : 8192);
    }
  }
};

ACCRUE_TEST_MAIN(TestPlugins)

}  // namespace test_plugins
#include "test_plugins.moc"
