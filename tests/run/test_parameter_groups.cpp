// SPDX-License-Identifier: Apache-2.0
#include <QTest>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/parameter_groups.h"
#include "support/test_program.h"

namespace test_parameter_groups {

using namespace accrue;

namespace {

ModelSpec small_gpt() {
  return {.kind = ModelKind::gpt, .layers = 2, .width = 8, .heads = 2, .context = 4, .vocabulary = 16};
}

}  // namespace

class TestParameterGroups : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_star_stands_for_any_characters_data() {
    QTest::addColumn<QString>("glob");
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("fits");
    const auto row = [](const char* glob, const char* name, bool fits) {
      QTest::addRow("%s, %s", glob, name) << glob << name << fits;
    };
    row("*.bias", "blocks.0.mlp.up.bias", true);
    row("*.bias", "blocks.0.mlp.up.weight", false);
    row("blocks.*.mlp.*", "blocks.11.mlp.down.weight", true);
    row("blocks.1.*", "blocks.11.mlp.down.weight", false);
    row("bias", "bias", true);
    row("bias", "a.bias", false);
    row("*", "anything", true);
    row("*a*b", "aab", true);
    row("*a*b", "aba", false);
    row("**", "", true);
    row("", "a", false);
  }
  void a_star_stands_for_any_characters() {
    QFETCH(QString, glob);
    QFETCH(QString, name);
    QFETCH(bool, fits);
    QCOMPARE(matches(glob.toStdString(), name.toStdString()), fits);
  }

  void by_default_matrices_decay_and_nothing_else_differs() {
    const auto groups = parameter_groups(small_gpt(), {});
    QCOMPARE(groups.size(), std::size_t{2});
    // Two embeddings and four matrices a block; four biases and two norms a block, and the last norm.
    QCOMPARE(groups[0], (ParameterGroupSize{{1.0, 1.0, false}, 2 + 4 * 2, (16 + 4) * 8 + 2 * 12 * 8 * 8}));
    QCOMPARE(groups[1], (ParameterGroupSize{{0.0, 1.0, false}, 8 * 2 + 2, 2 * (9 + 4) * 8 + 2 * 8}));
  }

  void groups_stand_in_the_order_of_their_first_parameter() {
    const OptimizerSpec optimizer{
        .no_decay = {{"*embedding*", "*.bias"}}, .scaled_lr = {"blocks.*.mlp.*"}, .lr_mult = 0.5, .decoupled_lr = 1e-4};
    std::vector<ParameterGroup> groups;
    for (const ParameterGroupSize& each : parameter_groups(small_gpt(), optimizer)) groups.push_back(each.group);
    QCOMPARE(groups, (std::vector<ParameterGroup>{{0.0, 1.0, true},      // token embedding
                                                  {0.0, 1.0, false},     // position embedding, biases
                                                  {1.0, 1.0, false},     // attention, and norms: the rule is replaced
                                                  {1.0, 0.5, false},     // mlp
                                                  {0.0, 0.5, false}}));  // its biases
  }

  void an_empty_list_lets_everything_decay() {
    const OptimizerSpec optimizer{.no_decay = std::vector<std::string>()};
    QCOMPARE(parameter_groups(small_gpt(), optimizer).size(), std::size_t{1});
  }

  /// The name alone decides: every rank that holds a part of a parameter treats it alike.
  void every_layout_has_the_same_groups() {
    const OptimizerSpec optimizer{
        .no_decay = {{"*norm*"}}, .scaled_lr = {"*.qkv.*"}, .lr_mult = 2.0, .decoupled_lr = 1.0};
    std::map<std::string, ParameterGroup> whole;
    for (const ParameterShare& share : parameter_shares(small_gpt(), {}))
      whole[share.name] = parameter_group(share.name, share.decays, optimizer);
    for (std::int64_t part = 0; part < 2; ++part)
      for (std::int64_t rank = 0; rank < 2; ++rank)
        for (const ParameterShare& share :
             parameter_shares(small_gpt(), {.tensor_ranks = 2, .tensor_rank = rank, .parts = 2, .part = part}))
          QCOMPARE(parameter_group(share.name, share.decays, optimizer), whole.at(share.name));
    QVERIFY(whole.at("token_embedding.weight").decoupled);
  }
};

ACCRUE_TEST_MAIN(TestParameterGroups)

}  // namespace test_parameter_groups
#include "test_parameter_groups.moc"
