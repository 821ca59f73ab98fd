// SPDX-License-Identifier: Apache-2.0
// Modules and parameters have the names of a run's saved weights.
#include <fmt/format.h>

#include "accrue/run/choice_names.h"
#include "script_parts.h"

namespace accrue::export_detail {

namespace {

constexpr std::string_view gpt_code = R"py(
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1 = nn.LayerNorm(WIDTH)
        self.attention = nn.ModuleDict({"qkv": nn.Linear(WIDTH, 3 * WIDTH), "output": nn.Linear(WIDTH, WIDTH)})
        self.norm_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.ModuleDict({"up": nn.Linear(WIDTH, 4 * WIDTH), "down": nn.Linear(4 * WIDTH, WIDTH)})

    def forward(self, x):
        rows, length, _ = x.shape
        split = self.attention["qkv"](self.norm_1(x)).view(rows, length, 3, HEADS, WIDTH // HEADS)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        dropout = DROPOUT if self.training else 0.0
        mixed = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, is_causal=True)
        x = x + F.dropout(self.attention["output"](mixed.transpose(1, 2).reshape(rows, length, WIDTH)), dropout)
        hidden = F.gelu(self.mlp["up"](self.norm_2(x)), approximate="tanh")
        return x + F.dropout(self.mlp["down"](hidden), dropout)


class Model(nn.Module):
    """A GPT-2: norms before the halves of a block, learned positions, the head tied to the token embedding."""

    def __init__(self):
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position_embedding = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.final_norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.token_embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
        x = F.dropout(x, DROPOUT if self.training else 0.0)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.final_norm(x), self.token_embedding.weight)

)py";

constexpr std::string_view gpt_weights = R"py(
def draw_weights(model):
    """The weights a run of Accrue with this seed begins with: matrices in their order, biases zero."""
    source = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                ends_block = name.endswith(("output.weight", "down.weight"))
                std = @RESIDUAL@ if ends_block else 0.02
                parameter.copy_(torch.empty(parameter.shape).normal_(0.0, std, generator=source))
            elif name.endswith("bias"):
                parameter.zero_()
    return model.to(@DTYPE@)

)py";

constexpr std::string_view gpt_zeros = R"py(
def draw_weights(model):
    """model.init = "zeros": everything but the norms' weights."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 or name.endswith("bias"):
                parameter.zero_()
    return model.to(@DTYPE@)

)py";

constexpr std::string_view mlp_code = R"py(
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [INPUTS, *HIDDEN, OUTPUTS]
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=@BIAS@) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = @ACTIVATION@
        return self.layers[-1](x)

)py";

constexpr std::string_view linear_code = R"py(
class Model(nn.Linear):
    def __init__(self):
        super().__init__(INPUTS, OUTPUTS, bias=@BIAS@)

)py";

constexpr std::string_view torch_weights = R"py(
def draw_weights(model):
    """The weights a run of Accrue with this seed begins with: PyTorch's own rule for linear layers, layer by layer."""
    source = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                bound = 1.0 / math.sqrt(module.in_features)
                for parameter in module.parameters(recurse=False):
                    parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=source))
    return model.to(@DTYPE@)

)py";

constexpr std::string_view normal_weights = R"py(
def draw_weights(model):
    """The weights a run of Accrue with this seed begins with: matrices normal, biases zero."""
    source = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.empty(parameter.shape).normal_(0.0, 0.02, generator=source))
            else:
                parameter.zero_()
    return model.to(@DTYPE@)

)py";

constexpr std::string_view zero_weights = R"py(
def draw_weights(model):
    """model.init = "zeros"."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model.to(@DTYPE@)

)py";

constexpr std::string_view given_weights = R"py(
def draw_weights(model):
    """model.values, parameter by parameter."""
    model = model.to(@DTYPE@)
    values = torch.tensor(@VALUES@, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            given, values = values[: parameter.numel()], values[parameter.numel() :]
            parameter.copy_(given.view(parameter.shape))
    return model

)py";

std::string activation(const ModelSpec& model) {
  std::string inner = "layer(x)";
  if (model.batch_norm) inner = "F.batch_norm(layer(x), None, None, training=True)";
  if (model.activation == Activation::tanh) return fmt::format("torch.tanh({})", inner);
  return fmt::format("F.{}({})", to_name(model.activation), inner);
}

std::string_view weights_text(const ModelSpec& model) {
  const bool tokens = model.kind == ModelKind::gpt;
  switch (model.init) {
    case WeightInit::torch:
      return tokens ? gpt_weights : torch_weights;
    case WeightInit::normal:
      return tokens ? gpt_weights : normal_weights;
    case WeightInit::zeros:
      return tokens ? gpt_zeros : zero_weights;
    case WeightInit::values:
      return given_weights;
  }
  return {};
}

}  // namespace

std::string model_part(const RunPlan& plan) {
  const ModelSpec& model = plan.spec.model;
  std::string text;
  if (model.kind == ModelKind::gpt)
    text = gpt_code;
  else if (model.kind == ModelKind::mlp)
    text = filled(filled(mlp_code, "@BIAS@", python(model.bias)), "@ACTIVATION@", activation(model));
  else
    text = filled(linear_code, "@BIAS@", python(model.bias));
  std::string weights(weights_text(model));
  weights = filled(weights, "@RESIDUAL@", model.init == WeightInit::normal ? "0.02" : "0.02 / math.sqrt(2 * LAYERS)");
  weights = filled(weights, "@VALUES@", python_list(model.values));
  return text + filled(weights, "@DTYPE@", model.dtype == Dtype::float64 ? "torch.float64" : "torch.float32");
}

}  // namespace accrue::export_detail
