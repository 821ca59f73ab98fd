// SPDX-License-Identifier: Apache-2.0
// Colossal-AI's rules, in the classes and on flat memory: against the originals where these could be run (Lamb and Lars
// of colossalai 0.5.0 under PyTorch 1.13.1), against LibTorch's optimizers where these compute the same, and against
// values that were worked out by hand. `--instructions generic|AVX2|AVX512` has the kernels of that set computed with,
// in place of the best that this CPU has.
#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <QTest>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string_view>

#include "accrue/optim/flat_optimizer.h"
#include "accrue/optim/lamb.h"
#include "accrue/optim/lars.h"
#include "kernels/kernels.h"
#include "optim/flat_paths.h"
#include "support/optimizer_rules.h"
#include "support/test_program.h"

namespace accrue {
namespace generic {
extern const HalfKernels half_table;
}
namespace avx2 {
extern const HalfKernels half_table;
}
namespace avx512 {
extern const HalfKernels half_table;
}
}  // namespace accrue

namespace test_optimizer_rules {

using namespace accrue;
using namespace accrue::test;
using torch::optim::Optimizer;

namespace {

/// Instruction set of the command line; empty: the best of this CPU.
std::string_view asked_instructions;

using Numbers = std::vector<double>;

at::Tensor reals(const Numbers& numbers) {
  return at::tensor(numbers, at::kDouble);
}

Rule rule(const QString& name) {
  for (Rule& each : rules())
    if (name == each.name) return each;
  throw std::logic_error("no such rule");
}

/// Some parameters, each updated by gradients that may be missing (undefined).
Numbers by_class(const MakeClass& make, std::vector<at::Tensor> params,
                 const std::vector<std::vector<at::Tensor>>& grads) {
  for (at::Tensor& param : params) param = param.clone().requires_grad_();
  const auto optimizer = make(params);
  for (const auto& step : grads) {
    for (std::size_t i = 0; i < params.size(); ++i) params[i].mutable_grad() = step[i];
    optimizer->step();
  }
  const at::Tensor all = at::cat(params).detach().to(at::kDouble);
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

Numbers on_flat_memory(const OptimizerSpec& spec, const std::vector<at::Tensor>& params,
                       const std::vector<std::vector<at::Tensor>>& grads, bool operators) {
  std::vector<OptimizerSegment> segments;
  std::int64_t numel = 0;
  for (const at::Tensor& param : params) {
    segments.push_back({.range = {numel, param.numel()}});
    numel += param.numel();
  }
  at::Tensor flat = at::cat(params).clone();
  const auto optimizer = operators ? make_flat_optimizer(spec, segments, numel, flat.options(), UpdatePath::operators)
                                   : make_flat_optimizer(spec, segments, numel, flat.scalar_type());
  for (const auto& step : grads) {
    at::Tensor all = at::zeros_like(flat);
    std::vector<FlatRange> reached;
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (!step[i].defined()) continue;
      reached.push_back(segments[i].range);
      all.narrow(0, segments[i].range.offset, segments[i].range.size).copy_(step[i]);
    }
    optimizer->step(flat, all, spec.lr, 1.0, reached);
  }
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + numel};
}

double largest_difference(const Numbers& a, const Numbers& b) {
  double most = a.size() == b.size() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && most < INFINITY; ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

#define VERIFY_NEAR(found, expected, tolerance)                              \
  do {                                                                       \
    const double worst = largest_difference(found, expected);                \
    QVERIFY2(worst <= (tolerance), qPrintable(QString::number(worst, 'g'))); \
  } while (false)

/// The originals' run: two parameters, the second zero at first and without a gradient in the second step.
const std::vector<at::Tensor> two_parameters{reals({.5, -1, 1.5, -2, .25}), reals({0, 0, 0})};
std::vector<std::vector<at::Tensor>> four_gradients() {
  std::vector<std::vector<at::Tensor>> steps;
  for (int s = 0; s < 4; ++s) {
    Numbers all;
    for (int i = 0; i < 5; ++i) all.push_back(((i * 7 + s * 3) % 11 - 5) / 10.0);
    steps.push_back({reals(all), s == 1 ? at::Tensor() : reals({all[0], all[1], all[2]})});
  }
  return steps;
}

void columns_of_rules() {
  QTest::addColumn<QString>("name");
  for (const Rule& each : rules()) QTest::newRow(each.name) << each.name;
}

/// A rule as its formula stands, one number at a time: FusedAdam's and FusedLAMB's, which no library has.
Numbers fused_adam_by_hand(double wd, bool adamw, const Numbers& grads) {
  double p = 1, m = 0, v = 0;
  Numbers all;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const double t = double(i) + 1, g = grads[i] + (adamw ? 0 : wd * p);
    m = .9 * m + .1 * g;
    v = .999 * v + .001 * g * g;
    const double u = m / (1 - std::pow(.9, t)) / (std::sqrt(v / (1 - std::pow(.999, t))) + 1e-8);
    p -= .1 * (u + (adamw ? wd * p : 0));
    all.push_back(p);
  }
  return all;
}

struct LambByHand {
  double lr = .01, wd = .01, max = 1, take1 = .1;
  bool adamw = true, corrected = true, nvlamb = false;
  Numbers operator()(std::vector<Numbers> params, const std::vector<std::vector<Numbers>>& grads) const {
    std::vector<Numbers> m = params, v = params;
    for (auto* moment : {&m, &v})
      for (Numbers& each : *moment) std::fill(each.begin(), each.end(), 0.0);
    int group_step = 0;
    for (const auto& step : grads) {
      const double t = ++group_step;
      double squares = 0;
      for (const Numbers& grad : step)
        for (const double g : grad) squares += g * g;
      const double norm = std::sqrt(squares), divide = max > 0 && norm > max ? norm / max : 1;
      for (std::size_t k = 0; k < params.size(); ++k) {
        if (step[k].empty()) continue;
        Numbers u(params[k].size());
        double of_p = 0, of_u = 0;
        for (std::size_t i = 0; i < u.size(); ++i) {
          const double g = step[k][i] / divide + (adamw ? 0 : wd * params[k][i]);
          m[k][i] = .9 * m[k][i] + take1 * g;
          v[k][i] = .999 * v[k][i] + .001 * g * g;
          const double c1 = corrected ? 1 - std::pow(.9, t) : 1, c2 = corrected ? 1 - std::pow(.999, t) : 1;
          u[i] = m[k][i] / c1 / (std::sqrt(v[k][i] / c2) + 1e-6) + (adamw ? wd * params[k][i] : 0);
          of_p += params[k][i] * params[k][i];
          of_u += u[i] * u[i];
        }
        const bool scales = (nvlamb || wd != 0) && of_p > 0 && of_u > 0;
        for (std::size_t i = 0; i < u.size(); ++i) params[k][i] -= lr * (scales ? std::sqrt(of_p / of_u) : 1) * u[i];
      }
    }
    Numbers all;
    for (const Numbers& each : params) all.insert(all.end(), each.begin(), each.end());
    return all;
  }
};

}  // namespace

class TestOptimizerRules : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    if (asked_instructions.empty()) return;
    for (const auto set : {InstructionSet::avx512, InstructionSet::avx2, InstructionSet::generic})
      if (asked_instructions == name_of(set)) limit_instruction_set(set);
    if (asked_instructions != name_of(instruction_set())) QSKIP("this CPU lacks these instructions");
  }

  void one_number_follows_its_rule_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<std::vector<double>>("expected");
    const Numbers adamw{.890000010000, .917710360288, .874209150245}, l2{.900000005, .877170382467, .813160747371};
    for (const char* name : {"CPUAdam", "HybridAdam", "FusedAdam"}) QTest::newRow(name) << name << adamw;
    for (const char* name : {"CPUAdam, L2", "FusedAdam, L2"}) QTest::newRow(name) << name << l2;
    QTest::newRow("FusedSGD") << "FusedSGD" << Numbers{.98, .9722, .925458};
    QTest::newRow("FusedSGD, late decay") << "FusedSGD, late decay" << Numbers{.98, .9812, .951288};
  }
  void one_number_follows_its_rule() {
    QFETCH(QString, name);
    QFETCH(std::vector<double>, expected);
    const Rule by = rule(name);
    std::vector<std::vector<at::Tensor>> grads;
    for (std::size_t step = 0; step < expected.size(); ++step) {
      grads.push_back({reals({Numbers{.1, -.2, .3}[step]})});
      VERIFY_NEAR(by_class(by.make, {reals({1})}, grads), Numbers{expected[step]}, 1e-12);
      for (const bool operators : {false, true})
        VERIFY_NEAR(on_flat_memory(by.spec, {reals({1})}, grads, operators), Numbers{expected[step]}, 1e-12);
    }
  }

  void two_numbers_follow_lamb_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<std::vector<double>>("first");
    QTest::addColumn<std::vector<double>>("second");
    QTest::newRow("Lamb") << "Lamb" << Numbers{.98443033, -1.98395053} << Numbers{.96341503, -1.97695958};
    QTest::newRow("corrected") << "Lamb, corrected" << Numbers{.99507644, -1.99492471}
                               << Numbers{.99009894, -1.99326797};
  }
  void two_numbers_follow_lamb() {
    QFETCH(QString, name);
    QFETCH(std::vector<double>, first);
    QFETCH(std::vector<double>, second);
    const Rule by = rule(name);
    const std::vector<std::vector<at::Tensor>> grads{{reals({.1, -.2})}, {reals({.3, .1})}};
    for (const auto& [steps, expected] : {std::pair(1, first), std::pair(2, second)}) {
      const std::vector<std::vector<at::Tensor>> these(grads.begin(), grads.begin() + steps);
      VERIFY_NEAR(by_class(by.make, {reals({1, -2})}, these), expected, 5.1e-9);
      VERIFY_NEAR(on_flat_memory(by.spec, {reals({1, -2})}, these, false), expected, 5.1e-9);
    }
  }

  /// The originals' own numbers.
  void lamb_and_lars_give_the_originals_numbers_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<std::vector<double>>("expected");
    QTest::newRow("Lamb") << "Lamb"
                          << Numbers{.5485593814386387,  -1.054774853091342,  1.5040375675535238,  -2.0400140608669903,
                                     .22370742132761948, .031880257818564156, -.03106615973107246, .031711623167088};
    QTest::newRow("Lamb, as Adam") << "Lamb, as Adam"
                                   << Numbers{.5973365758461565,    -1.0977934233017117, 1.5196614448149588,
                                              -2.0593267629021392,  .1811483275746101,   .04910113403202494,
                                              -.011562113513763047, .02666264864291717};
    QTest::newRow("Lars") << "Lars"
                          << Numbers{.501661954895326,   -1.000761329326908, 1.4980824109435211,  -1.999081284836535,
                                     .24891255402823986, .25005463540505074, -.09993465025766596, .09998289685572649};
    QTest::newRow("Lars, plain") << "Lars, plain"
                                 << Numbers{.5040937735821609,   -1.0130184106047544, 1.5033358539653958,
                                            -2.0194157143218496, .25280304253910585,  .247423442535027,
                                            -.09831340554740856, .09976556671065397};
  }
  void lamb_and_lars_give_the_originals_numbers() {
    QFETCH(QString, name);
    QFETCH(std::vector<double>, expected);
    const Rule by = rule(name);
    VERIFY_NEAR(by_class(by.make, two_parameters, four_gradients()), expected, 1e-14);
    for (const bool operators : {false, true})
      VERIFY_NEAR(on_flat_memory(by.spec, two_parameters, four_gradients(), operators), expected, 1e-14);
  }

  void groups_have_options_of_their_own() {
    const auto groups = [](const std::vector<at::Tensor>& params, auto first, auto second) {
      using Options = decltype(first);
      std::vector<torch::optim::OptimizerParamGroup> list;
      list.emplace_back(std::vector<at::Tensor>{params[0]}, std::make_unique<Options>(first));
      list.emplace_back(std::vector<at::Tensor>{params[1]}, std::make_unique<Options>(second));
      return list;
    };
    // The original's numbers for Lamb, corrected, with decay in the first group alone.
    const auto lamb = LambOptions(.01).bias_correction(true);
    const MakeClass make_lamb = [&](std::vector<at::Tensor> params) {
      return std::make_unique<Lamb>(groups(params, LambOptions(lamb).weight_decay(.1), lamb), lamb);
    };
    VERIFY_NEAR(by_class(make_lamb, two_parameters, four_gradients()),
                (Numbers{.511682983778741, -1.012653442490091, 1.5022615645516586, -2.0090802863579427,
                         .24264692779691052, .010020413841935907, -.009961152435882865, .010001425147521456}),
                1e-14);
    // And for Lars with lars off in the first: neither scaled nor decayed, but held within 10.
    const auto lars = LarsOptions(.1).momentum(.9).weight_decay(.1);
    const MakeClass make_lars = [&](std::vector<at::Tensor> params) {
      return std::make_unique<Lars>(groups(params, LarsOptions(lars).lars(false), lars), lars);
    };
    const Numbers second{.05000289343279437, -.019997516899887272, .019999519376016357};
    Numbers expected{.66715, -1.14728, 1.50568, -2.12065, .19321};
    expected.insert(expected.end(), second.begin(), second.end());
    VERIFY_NEAR(by_class(make_lars, two_parameters, four_gradients()), expected, 1e-14);
    auto large = four_gradients();
    for (auto& step : large) step[0] = step[0] * 60;
    expected = {4.509, -5.249, 2.413, -3.729, -2.0234};
    expected.insert(expected.end(), second.begin(), second.end());
    VERIFY_NEAR(by_class(make_lars, two_parameters, large), expected, 1e-14);
  }

  void fused_adam_follows_its_formula() {
    const Numbers grads{.1, -.2, .3, 0, 2};
    for (const bool adamw : {true, false}) {
      const Rule by = rule(adamw ? "FusedAdam" : "FusedAdam, L2");
      const Numbers expected = fused_adam_by_hand(.1, adamw, grads);
      std::vector<std::vector<at::Tensor>> steps;
      for (std::size_t i = 0; i < grads.size(); ++i) {
        steps.push_back({reals({grads[i]})});
        VERIFY_NEAR(by_class(by.make, {reals({1})}, steps), Numbers{expected[i]}, 1e-13);
      }
    }
  }

  void fused_lamb_follows_its_formula_data() {
    QTest::addColumn<QString>("name");
    QTest::newRow("FusedLAMB") << "FusedLAMB";
    QTest::newRow("L2") << "FusedLAMB, L2";
    QTest::newRow("NVLAMB") << "FusedLAMB, NVLAMB";
  }
  void fused_lamb_follows_its_formula() {
    QFETCH(QString, name);
    const Rule by = rule(name);
    const LambByHand by_hand{.wd = by.spec.weight_decay,
                             .max = by.spec.max_grad_norm,
                             .take1 = by.spec.grad_averaging ? .1 : 1,
                             .adamw = by.spec.adamw_mode,
                             .corrected = by.spec.bias_correction.value_or(true),
                             .nvlamb = by.spec.use_nvlamb};
    const auto numbers = [](const at::Tensor& tensor) {
      if (!tensor.defined()) return Numbers();
      return Numbers(tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel());
    };
    std::vector<std::vector<Numbers>> grads;
    for (const auto& step : four_gradients()) grads.push_back({numbers(step[0]), numbers(step[1])});
    const Numbers expected = by_hand({numbers(two_parameters[0]), numbers(two_parameters[1])}, grads);
    VERIFY_NEAR(by_class(by.make, two_parameters, four_gradients()), expected, 1e-14);
    for (const bool operators : {false, true})
      VERIFY_NEAR(on_flat_memory(by.spec, two_parameters, four_gradients(), operators), expected, 1e-14);
  }

  /// LibTorch's optimizers that compute the same.
  void adams_and_sgds_follow_the_library() {
    const auto follow = [](const char* name, const MakeClass& theirs) {
      at::manual_seed(3);
      const std::vector<at::Tensor> params{at::randn({70'001}, at::kDouble), at::randn({5}, at::kDouble)};
      std::vector<std::vector<at::Tensor>> grads;
      for (int step = 0; step < 6; ++step)
        grads.push_back({at::randn({70'001}, at::kDouble),
                         step < 2 ? at::Tensor() : at::randn({5}, at::kDouble)});  // the second comes late
      const Rule by = rule(name);
      const Numbers expected = by_class(theirs, params, grads);
      return std::max(largest_difference(by_class(by.make, params, grads), expected),
                      largest_difference(on_flat_memory(by.spec, params, grads, false), expected));
    };
    using namespace torch::optim;
    const auto adam = class_with<Adam>(AdamOptions(.1).weight_decay(.1));
    const auto adamw = class_with<AdamW>(AdamWOptions(.1).weight_decay(.1));
    const auto sgd = SGDOptions(.1).weight_decay(.1).momentum(.9);
    QVERIFY(follow("CPUAdam", adamw) < 1e-12);
    QVERIFY(follow("HybridAdam", adamw) < 1e-12);
    QVERIFY(follow("CPUAdam, L2", adam) < 1e-12);
    QVERIFY(follow("FusedSGD", class_with<SGD>(sgd)) < 1e-12);
    QVERIFY(follow("FusedSGD, damped", class_with<SGD>(SGDOptions(sgd).dampening(.25))) < 1e-12);
    QVERIFY(follow("FusedSGD, Nesterov", class_with<SGD>(SGDOptions(sgd).nesterov(true))) < 1e-12);
    QVERIFY(follow("FusedSGD, plain", class_with<SGD>(SGDOptions(.1).weight_decay(.1))) < 1e-12);
  }

  void classes_flat_memory_and_operators_agree_data() { columns_of_rules(); }
  void classes_flat_memory_and_operators_agree() {
    QFETCH(QString, name);
    const Rule by = rule(name);
    at::manual_seed(4);
    std::vector<at::Tensor> params;
    for (const std::int64_t size : {40, 1, 333, 140'003}) params.push_back(at::randn({size}, at::kDouble));
    std::vector<std::vector<at::Tensor>> grads(5);
    for (auto& step : grads)
      for (const at::Tensor& param : params) step.push_back(at::randn_like(param) * 0.1);
    const Numbers expected = on_flat_memory(by.spec, params, grads, true);
    VERIFY_NEAR(on_flat_memory(by.spec, params, grads, false), expected, 1e-12);
    VERIFY_NEAR(by_class(by.make, params, grads), expected, 1e-12);
  }

  /// 65536 numbers, from a table of LibTorch's own conversions; and what lies between them.
  void half_precision_is_that_of_the_library() {
    std::vector<std::uint16_t> all(65'536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const auto bits = at::from_blob(all.data(), {65'536}, at::kShort);
    at::manual_seed(9);
    const at::Tensor wide = at::randn({100'000}) * at::pow(2.0, at::randint(-40, 40, {100'000}).to(at::kFloat));
    // Halfway between two neighbours, and one step to each side.
    const at::Tensor steps = bits.view(at::kHalf).to(at::kFloat).slice(0, 0, 0x7c00);
    const at::Tensor middle = (steps.slice(0, 1) + steps.slice(0, 0, -1)) / 2;
    const at::Tensor values = at::cat(
        {wide, middle, at::nextafter(middle, at::full_like(middle, 1e9)), at::nextafter(middle, at::zeros_like(middle)),
         at::tensor({65519.0f, 65520.0f, 1e9f, -65520.0f, INFINITY, -INFINITY, 0.0f, -0.0f})});
    const auto n = values.numel();
    for (const HalfKernels* kernels : tables()) {
      at::Tensor widened = at::empty({65'536}), narrowed = at::empty({n}, at::kShort);
      const auto to = reinterpret_cast<std::uint16_t*>(narrowed.mutable_data_ptr<std::int16_t>());
      kernels->from_half(all.data(), widened.mutable_data_ptr<float>(), 65'536);
      QVERIFY(at::equal(widened.view(at::kInt), quiet(bits.view(at::kHalf).to(at::kFloat), widened)));
      kernels->from_bfloat16(all.data(), widened.mutable_data_ptr<float>(), 65'536);
      QVERIFY(at::equal(widened.view(at::kInt), quiet(bits.view(at::kBFloat16).to(at::kFloat), widened)));
      kernels->to_half(values.const_data_ptr<float>(), to, n);
      QVERIFY(at::equal(narrowed, values.to(at::kHalf).view(at::kShort)));
      kernels->to_bfloat16(values.const_data_ptr<float>(), to, n);
      QVERIFY(at::equal(narrowed, values.to(at::kBFloat16).view(at::kShort)));
      const float nan = std::nanf("");
      std::uint16_t bits_of_nan = 0;
      kernels->to_half(&nan, &bits_of_nan, 1);
      QCOMPARE(bits_of_nan & 0x7e00, 0x7e00);
      kernels->to_bfloat16(&nan, &bits_of_nan, 1);
      QCOMPARE(bits_of_nan & 0x7fc0, 0x7fc0);
    }
  }

 private:
  static std::vector<const HalfKernels*> tables() {
    std::vector<const HalfKernels*> list{&generic::half_table};
    if (instruction_set() >= InstructionSet::avx2) list.push_back(&avx2::half_table);
    if (instruction_set() >= InstructionSet::avx512) list.push_back(&avx512::half_table);
    return list;
  }
  /// The bits of `expected`; where both are no numbers, whatever `found` says.
  static at::Tensor quiet(const at::Tensor& expected, const at::Tensor& found) {
    return at::where(expected.isnan() & found.isnan(), found.view(at::kInt), expected.view(at::kInt));
  }
};

static const TestFile test_file(__FILE__, [](int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "--instructions") {
    asked_instructions = argv[2];
    argv[2] = argv[0];
    argc -= 2;
    argv += 2;
  }
  const QCoreApplication application(argc, argv);
  TestOptimizerRules tests;
  return QTest::qExec(&tests, argc, argv);
});

}  // namespace test_optimizer_rules
#include "test_optimizer_rules.moc"
