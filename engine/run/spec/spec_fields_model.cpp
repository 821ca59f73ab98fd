// SPDX-License-Identifier: Apache-2.0
// Rows of [model].
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

bool is_gpt(const RunSpec& spec) {
  return spec.model.kind == ModelKind::gpt;
}
bool is_mlp(const RunSpec& spec) {
  return spec.model.kind == ModelKind::mlp;
}
bool is_dense(const RunSpec& spec) {
  return !is_gpt(spec);
}

constexpr std::string_view later_models[] = {"bert", "t5"};

void add_gpt_fields(FieldList& list) {
  list.add("model.layers", "Layers", ACCRUE_MEMBER(model.layers), "Transformer blocks, one behind the other.")
      .range(1, 1000)
      .alias("transformers", "n_layer")
      .alias("transformers", "num_hidden_layers")
      .alias("Megatron-LM", "--num-layers")
      .when(is_gpt);
  list.add("model.width", "Width", ACCRUE_MEMBER(model.width),
           "Size of the vector that stands for one token; heads must divide it. The inner layer of a block is four "
           "times as wide.")
      .range(1, 65536)
      .alias("transformers", "n_embd")
      .alias("transformers", "hidden_size")
      .alias("Megatron-LM", "--hidden-size")
      .when(is_gpt);
  list.add("model.heads", "Attention heads", ACCRUE_MEMBER(model.heads),
           "Attention heads of a block; each looks at width / heads numbers of a token.")
      .range(1, 1024)
      .alias("transformers", "n_head")
      .alias("transformers", "num_attention_heads")
      .alias("Megatron-LM", "--num-attention-heads")
      .when(is_gpt);
  list.add("model.context", "Context", ACCRUE_MEMBER(model.context),
           "Tokens the model sees at once, and the length of a training sample.")
      .unit("tokens")
      .range(1, 1048576)
      .alias("transformers", "n_positions")
      .alias("transformers", "max_position_embeddings")
      .alias("nanoGPT", "block_size")
      .alias("Megatron-LM", "--seq-length")
      .when(is_gpt);
  list.add("model.vocabulary", "Vocabulary", ACCRUE_MEMBER(model.vocabulary),
           "How many different tokens there are; 256 where a token is a byte of text.")
      .unit("token kinds")
      .range(2, 4194304)
      .alias("transformers", "vocab_size")
      .alias("Megatron-LM", "--vocab-size")
      .when(is_gpt);
  list.add("model.dropout", "Dropout", ACCRUE_MEMBER(model.dropout),
           "Share of activations set to zero while training; 0 switches it off. With dropout an accumulated update is "
           "no longer exactly the update of one large batch.")
      .range(0, 0.95)
      .alias("transformers", "resid_pdrop")
      .alias("Megatron-LM", "--hidden-dropout")
      .when(is_gpt);
}

void add_dense_fields(FieldList& list) {
  list.add("model.inputs", "Inputs", ACCRUE_MEMBER(model.inputs),
           "Numbers in one sample's x. 1 for sequences, where each number is a position of its own.")
      .range(1, 1048576)
      .alias("PyTorch", "in_features")
      .when(is_dense);
  list.add("model.outputs", "Outputs", ACCRUE_MEMBER(model.outputs),
           "Numbers the model answers with: columns of y, or classes with cross-entropy.")
      .range(1, 1048576)
      .alias("PyTorch", "out_features")
      .when(is_dense);
  list.add("model.hidden", "Hidden widths", ACCRUE_MEMBER(model.hidden),
           "Widths of the hidden layers from input to output; an empty list leaves a linear model.")
      .range(1, 1048576)
      .alias("scikit-learn", "hidden_layer_sizes")
      .when(is_mlp);
  list.add("model.batch_norm", "Batch norm", ACCRUE_MEMBER(model.batch_norm),
           "Whether the outputs of each hidden layer are normalised over the micro-batch, without parameters and "
           "without "
           "running statistics. An accumulated update then never equals that of one large batch.")
      .when([](const RunSpec& spec) { return spec.model.kind == ModelKind::mlp; })
      .advanced();
  list.add("model.activation", "Activation", ACCRUE_MEMBER(model.activation), "What follows each hidden layer.")
      .alias("transformers", "hidden_act")
      .when(is_mlp);
  list.add("model.bias", "Bias", ACCRUE_MEMBER(model.bias), "Whether the layers add a learned constant.")
      .when(is_dense);
}

}  // namespace

void add_model_fields(FieldList& list) {
  list.add("model.kind", "Model", ACCRUE_MEMBER(model.kind),
           "What is trained: one linear layer, a multi-layer perceptron, or a GPT (pre-norm transformer decoder with "
           "learned positions and a head tied to the token embedding).")
      .unavailable(later_models)
      .alias("transformers", "model_type");
  list.add("model.dtype", "Number type", ACCRUE_MEMBER(model.dtype),
           "Type of parameters and activations. On a CPU float32 is fastest; float64 is for exact comparisons.")
      .alias("PyTorch", "dtype")
      .alias("transformers", "torch_dtype");
  add_gpt_fields(list);
  add_dense_fields(list);
  list.add("model.init", "Initial weights", ACCRUE_MEMBER(model.init),
           "torch: the framework's own rule for each layer; zeros; normal: standard deviation 0.02, biases 0; values: "
           "the numbers of model.values.")
      .alias("Megatron-LM", "--init-method-std")
      .advanced();
  list.add("model.values", "Given weights", ACCRUE_MEMBER(model.values),
           "With init = \"values\": for each layer its weight row by row [outputs, inputs], then its bias.")
      .when([](const RunSpec& spec) { return spec.model.init == WeightInit::values; })
      .advanced();
  list.add("model.loss", "Loss", ACCRUE_MEMBER(model.loss),
           "mse: mean over samples and outputs. cross_entropy: sum over the positions whose label is not -100, divided "
           "by their number. Left out: cross_entropy for a GPT, mse otherwise.")
      .alias("Keras", "loss")
      .advanced();
}

}  // namespace accrue::field_detail
