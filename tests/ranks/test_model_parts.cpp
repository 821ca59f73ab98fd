// SPDX-License-Identifier: Apache-2.0
// A GPT whose layers are divided over tensor-parallel ranks, with and without sequence parallelism, and over pipeline
// stages, against the undivided model: loss and every gradient, fused and in plain operators, in float64 and float32,
// with smoothed losses too; stages alone to the bit. And sequence parallelism against tensor parallelism, to the bit.
#include <ATen/ATen.h>

#include <QTest>

#include "accrue/comm/mesh.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/choice_names.h"
#include "models/gpt_model.h"
#include "pipeline/message_link.h"
#include "support/joined_rank.h"
#include "support/rank_checks.h"
#include "support/refusals.h"

namespace test_model_parts {

using namespace accrue;
using namespace accrue::test;

namespace {

ModelSpec small_gpt(Dtype dtype = Dtype::float64, std::int64_t vocabulary_multiple = 1) {
  return {.kind = ModelKind::gpt,
          .dtype = dtype,
          .layers = 4,
          .width = 16,
          .heads = 4,
          .context = 6,
          .vocabulary = 20,
          .vocabulary_multiple = vocabulary_multiple};
}

/// Weights away from the start, where norms are one and biases zero and a mistake in them would not show.
void move_away(torch::nn::Module& part, const std::vector<ParameterShare>& shares) {
  const at::NoGradGuard no_grad;
  auto parameters = part.named_parameters();
  at::manual_seed(4);
  std::size_t own = 0;
  for (const ParameterShape& whole : parameter_shapes(small_gpt())) {
    const at::Tensor noise = at::randn(whole.shape, at::kDouble) * 0.1;
    if (own == shares.size() || shares[own].name != whole.name) continue;
    parameters[whole.name].add_(part_of(noise, shares[own]));
    ++own;
  }
}

std::vector<Batch> made_batches(std::int64_t count) {
  at::manual_seed(5);
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < count; ++i) {
    batches.push_back({at::randint(20, {2, 6}, at::kLong), at::randint(20, {2, 6}, at::kLong), 2, 11});
    batches.back().targets[0][i] = -100;
  }
  return batches;
}

struct Work final : WindowWork {
  explicit Work(const std::vector<Batch>& made) : batches(made) {}
  bool begin(std::int64_t) override { return true; }
  const Batch& batch(std::int64_t micro_step) override { return batches[static_cast<std::size_t>(micro_step)]; }
  void starts(const PipelineOperation&) override {}
  double weigh(std::int64_t, LossSum& sum) override {
    loss += sum.sum.item<double>();
    return 0.25;
  }
  void computed(const PipelineOperation&) override {}
  void finished(const PipelineOperation&) override {}
  const std::vector<Batch>& batches;
  double loss = 0.0;
};

/// Of float64 number by number, of float32 by the norm.
bool close(const at::Tensor& a, const at::Tensor& b) {
  if (b.scalar_type() == at::kDouble)
    return (a - b).abs().max().item<double>() <= 1e-12 * std::max(1.0, b.abs().max().item<double>());
  return (a - b).norm().item<double>() <= 1e-5 * b.norm().item<double>();
}

/// PyTorch's cross entropy of all logits at once. There the target also gets an even share of the smoothing.
at::Tensor dense_loss(GptModel& model, const Batch& batch, double smoothing) {
  const double classes = static_cast<double>(small_gpt().vocabulary);
  return at::cross_entropy_loss(model.logits_of(batch.inputs).reshape({-1, small_gpt().vocabulary}),
                                batch.targets.reshape({-1}), {}, at::Reduction::Sum, -100,
                                smoothing * classes / (classes - 1));
}

/// Arguments: tensor ranks, stages, chunks, "rows" under sequence parallelism, "plain" operators, backend, what the
/// vocabulary's rows are a multiple of, number type, label smoothing.
int parts_are_the_whole(RankContext& rank) {
  at::set_num_threads(1);  // ranks share the cores
  const auto& words = rank.arguments;
  const std::int64_t tensor = std::stoi(words[0]), stages = std::stoi(words[1]), chunks = std::stoi(words[2]);
  const bool plain = words[4] == "plain";
  const Dtype dtype = *from_name<Dtype>(words[7]);
  const double smoothing = std::stod(words[8]), tolerance = dtype == Dtype::float64 ? 1e-12 : 1e-6;
  ModelSpec spec = small_gpt(dtype, std::stoi(words[6]));
  spec.label_smoothing = smoothing;
  const auto batches = made_batches(4);

  WeightSource source(3);
  GptModel whole(small_gpt(dtype), source);
  whole.to(scalar_type(dtype));
  move_away(whole, parameter_shares(small_gpt(), {}));
  whole.use_plain_operators(plain);
  double loss = 0.0;
  for (const Batch& batch : batches) {
    const at::Tensor sum = smoothing > 0.0 ? dense_loss(whole, batch, smoothing) : whole.whole_loss(batch).sum;
    loss += sum.item<double>();
    (sum * 0.25).backward();
  }

  const auto joined = join_ranks(rank, backend_named(words[5]));
  const Mesh mesh = taken(Mesh::build(*joined.rendezvous, {.pipeline = stages, .tensor = tensor}));
  const TensorAxis axis(mesh.tensor(), words[3] == "rows");
  std::vector<std::shared_ptr<ModelPart>> own;
  std::vector<ModelPart*> parts;
  std::vector<ModelShare> held;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    held.push_back({tensor, mesh.at().tensor, stages * chunks, chunk * stages + mesh.at().pipeline});
    own.push_back(make_model_part(spec, 3, held.back(), axis));
    parts.push_back(own.back().get());
    move_away(*own.back(), parameter_shares(spec, held.back()));
    dynamic_cast<GptModel&>(*own.back()).use_plain_operators(plain);
  }
  const PipelineShape shape = pipeline_shape({.pipeline = stages, .virtual_pipeline = chunks}, std::ssize(batches));
  MessageLink link(mesh.pipeline());
  WindowExecutor executor(parts, stages, mesh.at().pipeline, &link);
  Work work(batches);
  executor.run(executor.operations(shape), work);
  // PyTorch's cross entropy has other last bits.
  const bool to_the_bit = tensor == 1 && smoothing == 0.0;
  if (mesh.last_stage()) DEMAND(to_the_bit ? work.loss == loss : std::abs(work.loss - loss) <= tolerance * loss);

  auto expected = whole.named_parameters();
  for (std::size_t chunk = 0; chunk < own.size(); ++chunk) {
    auto parameters = own[chunk]->named_parameters();
    const auto shares = parameter_shares(spec, held[chunk]);
    DEMAND(parameters.size() == shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      DEMAND(parameters[i].key() == shares[i].name && parameters[i].value().sizes().vec() == shares[i].shape);
      DEMAND(close(parameters[i].value(), part_of(expected[shares[i].name], shares[i])));
      at::Tensor gradient = parameters[i].value().grad().clone();
      // Gradients computed on a rank's own rows are summed over the axis; those of the table's two uses over the
      // stages.
      const bool by_rows = axis.sequence() && !shares[i].divided && shares[i].name != "position_embedding.weight";
      if (by_rows) axis.sum(gradient);
      if (stages > 1 && shares[i].name == "token_embedding.weight") mesh.along(Axis::embedding).all_reduce(gradient);
      const at::Tensor wanted = part_of(expected[shares[i].name].grad(), shares[i]);
      // Over stages each use of the table is summed by itself.
      const bool same = to_the_bit && (stages == 1 || shares[i].name != "token_embedding.weight");
      if (same ? !gradient.equal(wanted) : !close(gradient, wanted))
        throw std::runtime_error(shares[i].name + " has another gradient");
    }
  }
  return 0;
}

/// Layers of two ranks exchange sums of two numbers, which are equal in either order. Arguments: number type, "plain"
/// operators.
int rows_change_no_bit(RankContext& rank) {
  at::set_num_threads(1);
  const ModelSpec spec = small_gpt(*from_name<Dtype>(rank.arguments.at(0)));
  const auto joined = join_ranks(rank);
  const ModelShare share{.tensor_ranks = 2, .tensor_rank = rank.rank};
  std::vector<std::shared_ptr<ModelPart>> parts;
  std::vector<TensorAxis> axes;
  for (const bool rows : {false, true}) {
    axes.emplace_back(*joined.data, rows);
    parts.push_back(make_model_part(spec, 3, share, axes.back()));
    move_away(*parts.back(), parameter_shares(spec, share));
    dynamic_cast<GptModel&>(*parts.back()).use_plain_operators(rank.arguments.at(1) == "plain");
  }
  for (const Batch& batch : made_batches(4)) {
    const at::Tensor whole = parts[0]->whole_loss(batch).sum, rows = parts[1]->whole_loss(batch).sum;
    DEMAND(rows.equal(whole));
    whole.backward();
    rows.backward();
  }
  int norms = 0;
  for (const auto& each : parts[0]->named_parameters()) {
    if (each.key().find("norm") == std::string::npos) continue;
    at::Tensor found = parts[1]->named_parameters()[each.key()].grad().clone();
    axes[1].sum(found);
    const at::Tensor& expected = each.value().grad();
    const double apart = ((found - expected).norm() / expected.norm()).item<double>();
    if (!(apart <= (spec.dtype == Dtype::float64 ? 1e-12 : 1e-6)))
      throw std::runtime_error(each.key() + ": " + std::to_string(apart));
    ++norms;
  }
  DEMAND(norms == 2 * (2 * 4 + 1));
  return 0;
}

}  // namespace

class TestModelParts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void parts_have_the_loss_and_gradients_of_the_whole_data() {
    QTest::addColumn<QStringList>("words");
    QTest::addColumn<int>("world");
    struct Layout {
      int tensor, stages, chunks;
    };
    for (const Layout& layout :
         {Layout{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {1, 4, 1}, {1, 2, 2}, {2, 2, 1}, {2, 2, 2}})
      for (const char* lies : {"whole", "rows"})
        for (const char* operators : {"fused", "plain"})
          for (const char* backend : {"shm", "gloo"}) {
            if (layout.tensor == 1 && QString(lies) == "rows") continue;
            const bool few = layout.tensor == 2 && layout.chunks == 1 && QString(operators) == "fused";
            if (QString(backend) == "gloo" && !few) continue;
            const QStringList words{QString::number(layout.tensor),
                                    QString::number(layout.stages),
                                    QString::number(layout.chunks),
                                    lies,
                                    operators,
                                    backend};
            const auto row = [&](const char* what, const QStringList& rest) {
              QTest::addRow("%s%s", qPrintable(words.join(' ')), what) << words + rest << layout.tensor * layout.stages;
            };
            row("", {"1", "float64", "0"});
            if (QString(backend) == "gloo") continue;
            row(", float32", {"1", "float32", "0"});
            // 24 rows, or 64, of which the last two ranks hold padding alone.
            const bool pads = layout.tensor > 1 && layout.chunks == 1 && (layout.stages == 1 || few);
            const QString multiple = layout.tensor == 4 ? "64" : "24";
            if (pads) row(", padded", {multiple, "float64", "0"});
            if (layout.chunks > 1) continue;
            row(", smoothed", {"1", "float64", "0.1"});
            if (pads) row(", padded, smoothed", {multiple, "float64", "0.1"});
          }
  }
  void parts_have_the_loss_and_gradients_of_the_whole() {
    QFETCH(QStringList, words);
    QFETCH(int, world);
    RankGroupOptions options;
    for (const QString& word : words) options.arguments.push_back(word.toStdString());
    RankGroup ranks("parts_are_the_whole", world, options);
    ACCRUE_ALL_RANKS_OK(ranks.finish(60s));
  }

  void rows_are_what_two_tensor_ranks_compute_to_the_bit_data() {
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<QString>("operators");
    for (const char* dtype : {"float64", "float32"})
      for (const char* operators : {"fused", "plain"}) QTest::addRow("%s, %s", dtype, operators) << dtype << operators;
  }
  void rows_are_what_two_tensor_ranks_compute_to_the_bit() {
    QFETCH(QString, dtype);
    QFETCH(QString, operators);
    RankGroup ranks("rows_change_no_bit", 2, {.arguments = {dtype.toStdString(), operators.toStdString()}});
    ACCRUE_ALL_RANKS_OK(ranks.finish(60s));
  }

  /// An evaluation asks how probable the targets are, whatever training rewards.
  void losses_are_smoothed_in_training_only() {
    ModelSpec spec = small_gpt();
    spec.label_smoothing = 0.1;
    const auto smoothed = make_model(spec, 3), plain = make_model(small_gpt(), 3);
    const Batch batch = made_batches(1).front();
    const double trained = smoothed->whole_loss(batch).sum.item<double>();
    smoothed->eval();
    const double evaluated = smoothed->whole_loss(batch).sum.item<double>();
    QVERIFY(trained != evaluated);
    QCOMPARE(evaluated, plain->whole_loss(batch).sum.item<double>());
  }

  void what_cannot_be_divided_is_refused() {
    const TensorAxis alone;
    const auto refusal = [&](ModelSpec spec, const ModelShare& share) {
      return refused([&] { (void)make_model_part(spec, 1, share, alone); });
    };
    QVERIFY(
        contains(refusal(small_gpt(), {.tensor_ranks = 3}), "model.heads 4 is not a multiple of parallel.tensor 3"));
    QVERIFY(contains(refusal(small_gpt(), {.parts = 3}), "model.layers 4 is not a multiple"));
    QVERIFY(contains(refusal({.kind = ModelKind::mlp}, {.parts = 2}), "\"mlp\" is not divided"));
  }
};

ACCRUE_RANK_TEST_MAIN(TestModelParts, {RANK_BODY(parts_are_the_whole), RANK_BODY(rows_change_no_bit)})

}  // namespace test_model_parts
#include "test_model_parts.moc"
