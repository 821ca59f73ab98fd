// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "accrue/models/model_part.h"
#include "models/bert_model.h"
#include "models/dense_models.h"
#include "models/gpt_model.h"
#include "models/load_weights.h"
#include "models/t5_model.h"
#include "models/weight_init.h"

namespace accrue {

namespace {

std::shared_ptr<ModelPart> build(const ModelSpec& spec, WeightSource& source, const ModelShare& share,
                                 const TensorAxis& axis, const ParallelSpec& parallel) {
  if (const std::string wrong = check_share(spec, share.tensor_ranks, share.parts, share.split); !wrong.empty())
    throw std::invalid_argument(wrong);
  switch (spec.kind) {
    case ModelKind::linear:
      return std::make_shared<LinearModel>(spec, source);
    case ModelKind::mlp:
      return std::make_shared<MlpModel>(spec, source);
    case ModelKind::gpt:
    case ModelKind::llama:
      return std::make_shared<GptModel>(spec, source, share, axis, parallel);
    case ModelKind::bert:
      return std::make_shared<BertModel>(spec, source, share, axis, parallel);
    case ModelKind::t5:
      return std::make_shared<T5Model>(spec, source, share, axis, parallel);
  }
  throw std::invalid_argument("model.kind is not a model that this engine can build");
}

}  // namespace

at::Tensor ModelPart::logits(const at::Tensor& /*outputs*/) const {
  throw std::logic_error("this part of a model has no logits");
}

at::Tensor ModelPart::token_losses(const at::Tensor& /*outputs*/, const Batch& /*batch*/) const {
  throw std::logic_error("this part of a model has no losses of tokens");
}

at::Tensor ModelPart::empty_input(const Batch& /*batch*/) const {
  throw std::logic_error("this model part receives nothing from another stage");
}

void ModelPart::backward(const at::Tensor& outputs, const at::Tensor& gradient) {
  outputs.backward(gradient);
}

std::shared_ptr<ModelPart> make_model_part(const ModelSpec& spec, std::uint64_t seed, const ModelShare& share,
                                           const TensorAxis& axis, const ParallelSpec& parallel) {
  WeightSource source(seed);
  std::shared_ptr<ModelPart> part = build(spec, source, share, axis, parallel);
  if (spec.dtype != Dtype::float32) part->to(scalar_type(spec.dtype));
  // After the conversion, so that given values keep every digit of a float64 model.
  if (spec.init == WeightInit::values) fill_with_values(spec, share, part->parameters());
  if (spec.init == WeightInit::checkpoint) load_weights(spec, share, part->parameters());
  return part;
}

std::shared_ptr<ModelPart> make_model(const ModelSpec& spec, std::uint64_t seed) {
  return make_model_part(spec, seed, {}, {});
}

}  // namespace accrue
