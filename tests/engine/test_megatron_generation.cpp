// SPDX-License-Identifier: Apache-2.0
// Text generation: distributions by hand, greedy and drawn rows, ends of documents, and a beam against all rows there
// are.
#include <ATen/ATen.h>

#include <QTest>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "accrue/megatron/text_generation.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_megatron_generation {

using namespace accrue::megatron;
using namespace accrue::test;

namespace {

/// The next token depends on the last one alone: rows of probabilities.
LogitsFunction markov(std::vector<std::vector<double>> rows) {
  std::vector<at::Tensor> logits;
  for (const auto& row : rows) logits.push_back(at::tensor(row, at::kDouble).log());
  return [table = at::stack(logits)](const at::Tensor& tokens) {
    return table.index_select(0, tokens.reshape({-1})).view({tokens.size(0), tokens.size(1), -1});
  };
}

QString refusal(const GenerationOptions& options, std::vector<TokenList> prompts = {{0}}) {
  return thrown_by<std::invalid_argument>([&] {
    generate(markov({{0.5, 0.5}, {0.5, 0.5}}), std::move(prompts), options);
  });
}

}  // namespace

class TestMegatronGeneration : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// Probabilities 1, 2, 4 and 8 of 15.
  void distributions() {
    const at::Tensor logits = at::tensor({1.0, 2.0, 4.0, 8.0}, at::kDouble).log().unsqueeze(0);
    const auto is = [](const at::Tensor& got, std::vector<double> parts) {
      const at::Tensor expected = at::tensor(parts, at::kDouble);
      return at::allclose(got[0], expected / expected.sum(), 1e-12, 1e-15);
    };
    QVERIFY(is(sampling_probabilities(logits, 1.0, 0, 0.0), {1, 2, 4, 8}));
    QVERIFY(is(sampling_probabilities(logits, 0.5, 0, 0.0), {1, 4, 16, 64}));
    QVERIFY(is(sampling_probabilities(logits, 1.0, 2, 0.0), {0, 0, 4, 8}));
    QVERIFY(is(sampling_probabilities(logits, 1.0, 9, 0.0), {1, 2, 4, 8}));
    QVERIFY(is(sampling_probabilities(logits, 1.0, 0, 0.5), {0, 0, 0, 8}));
    QVERIFY(is(sampling_probabilities(logits, 1.0, 0, 0.6), {0, 0, 4, 8}));
    QVERIFY(is(sampling_probabilities(logits, 1.0, 0, 1.0), {1, 2, 4, 8}));
  }

  void lengths_are_multiples_of_four() {
    QCOMPARE(generated_length(5, 6, 0), std::int64_t{12});
    QCOMPARE(generated_length(5, 7, 0), std::int64_t{12});
    QCOMPARE(generated_length(5, 8, 0), std::int64_t{16});
    QCOMPARE(generated_length(5, 8, 14), std::int64_t{14});
  }

  void the_likeliest_tokens_up_to_the_end_of_document() {
    // 0 -> 1 -> 2 -> 3 (end)
    const auto chain = markov({{0.1, 0.7, 0.1, 0.1}, {0.1, 0.1, 0.7, 0.1}, {0.1, 0.1, 0.1, 0.7}, {1, 0, 0, 0}});
    const auto rows = generate(chain, {{0}, {1, 2, 0}}, {.tokens_to_generate = 5, .top_k = 1, .eod = 3});
    QCOMPARE(rows[0].tokens, (TokenList{0, 1, 2}));
    QCOMPARE(rows[1].tokens, (TokenList{1, 2, 0, 1, 2}));
    QVERIFY(std::abs(rows[0].log_probability - 3 * std::log(0.7)) < 1e-12);
    QCOMPARE(rows[1].prompt, std::int64_t{3});
    // Without an end the row has its full length.
    QCOMPARE(generate(chain, {{0}}, {.tokens_to_generate = 5, .top_k = 1})[0].tokens.size(), std::size_t{8});
    const auto begun = generate(chain, {{1}}, {.tokens_to_generate = 1, .top_k = 1, .add_bos = true, .eod = 3});
    QCOMPARE(begun[0].tokens, (TokenList{3, 1, 2}));
  }

  void a_seed_gives_one_text() {
    const auto coin = markov({{0.5, 0.5}, {0.5, 0.5}});
    const GenerationOptions options{.tokens_to_generate = 63, .seed = 7};
    const TokenList first = generate(coin, {{0}}, options)[0].tokens;
    QCOMPARE(generate(coin, {{0}}, options)[0].tokens, first);
    QVERIFY(generate(coin, {{0}}, {.tokens_to_generate = 63, .seed = 8})[0].tokens != first);
    QCOMPARE(first.size(), std::size_t{64});
  }

  /// p = 0.9 keeps both tokens; after one it is 0.45, below the likelier token's 0.6, which is left alone.
  void top_p_falls() {
    const auto model = markov({{0.6, 0.4}, {0.6, 0.4}});
    int others = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto row =
          generate(model, {{0}}, {.tokens_to_generate = 7, .top_p = 0.9, .top_p_decay = 0.5, .seed = seed});
      for (std::size_t i = 2; i < row[0].tokens.size(); ++i) QCOMPARE(row[0].tokens[i], std::int64_t{0});
      others += row[0].tokens[1] == 1 ? 1 : 0;
    }
    QVERIFY(others > 0);
    // With a bound above 0.6 both stay in reach.
    bool bounded = false;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto row = generate(
          model, {{0}}, {.tokens_to_generate = 7, .top_p = 0.9, .top_p_decay = 0.5, .top_p_bound = 0.8, .seed = seed});
      for (std::size_t i = 2; i < row[0].tokens.size(); ++i) bounded = bounded || row[0].tokens[i] == 1;
    }
    QVERIFY(bounded);
  }

  void a_wide_beam_finds_the_best_of_all_rows() {
    const std::vector<std::vector<double>> table{{0.2, 0.5, 0.3}, {0.1, 0.3, 0.6}, {0.7, 0.2, 0.1}};
    double best = -std::numeric_limits<double>::infinity();
    TokenList expected;
    for (std::int64_t a = 0; a < 3; ++a)
      for (std::int64_t b = 0; b < 3; ++b)
        for (std::int64_t c = 0; c < 3; ++c) {
          const auto p = [&](std::int64_t from, std::int64_t to) {
            return std::log(table[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]);
          };
          const double sum = p(0, a) + p(a, b) + p(b, c);
          if (sum > best) {
            best = sum;
            expected = {0, a, b, c};
          }
        }
    const auto rows = beam_search(markov(table), {0}, {.tokens_to_generate = 3, .beam_width = 27});
    QCOMPARE(rows.front().tokens, expected);
    QVERIFY(std::abs(rows.front().log_probability - best / 3.0) < 1e-12);
    QCOMPARE(rows.size(), std::size_t{27});
    for (std::size_t i = 1; i < rows.size(); ++i) QVERIFY(rows[i].log_probability <= rows[i - 1].log_probability);
  }

  /// An end at once has probability 0.6; token 1 and then the end 0.4 x 0.95 = 0.38.
  void the_length_penalty_decides() {
    const auto model = markov({{0.0, 0.4, 0.6}, {0.05, 0.0, 0.95}, {1, 0, 0}});
    const auto best = [&](double penalty) {
      return beam_search(model, {0}, {.tokens_to_generate = 3, .beam_width = 2, .length_penalty = penalty, .eod = 2})
          .front();
    };
    QCOMPARE(best(0.0).tokens, (TokenList{0}));
    QVERIFY(std::abs(best(0.0).log_probability - std::log(0.6)) < 1e-12);
    QCOMPARE(best(1.0).tokens, (TokenList{0, 1}));
    QVERIFY(std::abs(best(1.0).log_probability - std::log(0.38) / 2.0) < 1e-12);
  }

  void options_out_of_range_are_refused_by_name() {
    QVERIFY(refusal({.temperature = 0.0}).contains("temperature"));
    QVERIFY(refusal({.temperature = 101.0}).contains("temperature"));
    QVERIFY(refusal({.top_k = 1001}).contains("top_k"));
    QVERIFY(refusal({.top_p = 1.5}).contains("top_p"));
    QVERIFY(refusal({.top_k = 2, .top_p = 0.5}).contains("exclude"));
    QVERIFY(refusal({.top_p_decay = 0.5}).contains("need top_p"));
    QVERIFY(refusal({.tokens_to_generate = 0}).contains("tokens_to_generate"));
    QVERIFY(refusal({.longest = 1}).contains("the model takes 1"));
    QVERIFY(refusal({.add_bos = true}).contains("end-of-document"));
    QVERIFY(refusal({}, {{}}).contains("empty"));
    QVERIFY(refusal({}, {}).contains("no prompt"));
  }
};

ACCRUE_TEST_MAIN(TestMegatronGeneration)

}  // namespace test_megatron_generation
#include "test_megatron_generation.moc"
