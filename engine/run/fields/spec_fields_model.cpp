// SPDX-License-Identifier: Apache-2.0
// Rows of [model].
#include "accrue/run/fields/block_form.h"
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

bool has_blocks(const RunSpec& spec) {
  return is_transformer(spec.model.kind);
}
bool is_bert(const RunSpec& spec) {
  return spec.model.kind == ModelKind::bert;
}
bool is_t5(const RunSpec& spec) {
  return spec.model.kind == ModelKind::t5;
}
bool is_decoder(const RunSpec& spec) {
  return is_decoder_only(spec.model.kind);
}
bool is_mlp(const RunSpec& spec) {
  return spec.model.kind == ModelKind::mlp;
}
bool has_rotary(const RunSpec& spec) {
  return is_decoder(spec) && block_form(spec.model).positions == PositionKind::rotary;
}
bool is_dense(const RunSpec& spec) {
  return !has_blocks(spec);
}
bool is_dense_or_decoder(const RunSpec& spec) {
  return is_dense(spec) || is_decoder(spec);
}
bool has_activation(const RunSpec& spec) {
  return is_mlp(spec) || is_decoder(spec);
}

void add_transformer_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(model.layers), "Layers", "Number of transformer blocks; for a T5, of the encoder.")
      .range(1, 1000)
      .when(has_blocks)
      .elsewhere("transformers: n_layer, num_hidden_layers; Megatron-LM: --num-layers");
  list.add(ACCRUE_FIELD(model.width), "Width",
           "Size of the vector that stands for one token; heads must divide it. A block's inner layer is wider.")
      .range(1, 65536)
      .when(has_blocks)
      .elsewhere("transformers: n_embd, hidden_size; Megatron-LM: --hidden-size");
  list.add(ACCRUE_FIELD(model.heads), "Attention heads",
           "Attention heads per block, each of size width / heads unless model.head_width says otherwise.")
      .range(1, 1024)
      .when(has_blocks)
      .elsewhere("transformers: n_head, num_attention_heads; Megatron-LM: --num-attention-heads");
  list.add(ACCRUE_FIELD(model.context), "Context",
           "Sequence length, which is also the length of a training sample; for a T5, of the encoder.")
      .range(1, 1048576, "tokens")
      .when(has_blocks)
      .elsewhere("transformers: n_positions, max_position_embeddings; nanoGPT: block_size; Megatron-LM: --seq-length");
  list.add(ACCRUE_FIELD(model.vocabulary), "Vocabulary",
           "Number of distinct tokens; 256 where a token is a byte of text.")
      .range(2, 4194304, "token kinds")
      .when(has_blocks)
      .elsewhere("transformers: vocab_size; Megatron-LM: --vocab-size");
  list.advanced(ACCRUE_FIELD(model.vocabulary_multiple), "Vocabulary multiple",
                "The embedding has the next multiple of this many rows, so that tensor-parallel ranks can divide it.")
      .range(1, 65536, "token kinds")
      .when(has_blocks)
      .elsewhere("Megatron-LM: --make-vocab-size-divisible-by");
  list.advanced(ACCRUE_FIELD(model.vocabulary_padding), "Vocabulary padding",
                "fixed: the number of rows does not depend on the layout, and rows beyond the vocabulary take no part "
                "in the softmax, so every layout trains the same model. megatron: a multiple of vocabulary_multiple x "
                "tensor ranks, and all rows take part.")
      .when(has_blocks);
  list.add(ACCRUE_FIELD(model.dropout), "Dropout",
           "Share of activations set to zero while training; 0 switches it off. With dropout an accumulated update is "
           "no longer exactly the update of one large batch.")
      .range(0, 0.95)
      .when(has_blocks)
      .elsewhere("transformers: resid_pdrop; Megatron-LM: --hidden-dropout");
  list.advanced(ACCRUE_FIELD(model.label_smoothing), "Label smoothing",
                "In training the target has this much less than 1, and the other tokens share it evenly; evaluation "
                "does not smooth. PyTorch gives the target its even share, too: its label_smoothing is this times "
                "vocabulary / (vocabulary - 1).")
      .range(0, 0.99)
      .when(has_blocks)
      .elsewhere("transformers: label_smoothing_factor; PyTorch: label_smoothing");
  list.add(ACCRUE_FIELD(model.binary_head), "Sentence order",
           "Whether a BERT also learns if the two segments of a sample are in their order. Its loss is then the sum of "
           "two means: over masked tokens, and over samples.")
      .when(is_bert)
      .elsewhere("Megatron-LM: --bert-no-binary-head");
  list.add(ACCRUE_FIELD(model.decoder_layers), "Decoder layers",
           "Number of blocks in a T5's decoder. Left out: as many as layers.")
      .range(1, 1000)
      .when(is_t5)
      .elsewhere("transformers: num_decoder_layers; Megatron-LM: --decoder-num-layers");
  list.add(ACCRUE_FIELD(model.decoder_context), "Decoder context",
           "Sequence length of a T5's decoder. Left out: as many as context.")
      .range(1, 1048576, "tokens")
      .when(is_t5)
      .elsewhere("Megatron-LM: --decoder-seq-length");
}

/// What the blocks of a decoder are made of; left out, what its kind has.
void add_form_fields(FieldList& list) {
  list.advanced(
          ACCRUE_FIELD(model.kv_heads), "Key-value heads",
          "Heads of keys and values, each shared by a group of heads; heads must be a multiple. Left out: as many "
          "as heads.")
      .range(1, 1024)
      .when(is_decoder)
      .elsewhere("transformers: num_key_value_heads; Megatron-LM: --group-query-attention --num-query-groups");
  list.advanced(ACCRUE_FIELD(model.head_width), "Head width", "Size of one head. Left out: width / heads.")
      .range(1, 65536)
      .when(is_decoder)
      .elsewhere("transformers: head_dim; Megatron-LM: --kv-channels");
  list.advanced(ACCRUE_FIELD(model.mlp_width), "Inner width",
                "Width of a block's inner layer. Left out: 4 x width, or with swiglu 8 / 3 x width rounded up to a "
                "multiple of 64.")
      .range(1, 1048576)
      .when(is_decoder)
      .elsewhere("transformers: intermediate_size, n_inner; Megatron-LM: --ffn-hidden-size");
  list.advanced(ACCRUE_FIELD(model.norm), "Norm",
                "layer: subtracts the mean and divides by the deviation; rms: divides by the root of the mean square. "
                "Left out: layer for a GPT, rms for a Llama.")
      .when(is_decoder)
      .elsewhere("Megatron-LM: --normalization");
  list.advanced(ACCRUE_FIELD(model.norm_eps), "Norm epsilon", "Added under the root of a norm. Left out: 1e-5.")
      .range(1e-12, 0.1)
      .when(is_decoder)
      .elsewhere("transformers: layer_norm_epsilon, rms_norm_eps; Megatron-LM: --norm-epsilon");
  list.advanced(ACCRUE_FIELD(model.positions), "Positions",
                "learned: a table that is added to the token embedding; rotary: queries and keys are rotated by their "
                "positions. Left out: learned for a GPT, rotary for a Llama.")
      .when(is_decoder)
      .elsewhere("Megatron-LM: --position-embedding-type");
  list.advanced(ACCRUE_FIELD(model.rotary_base), "Rotary base",
                "Number i of a head's half turns by 1 / base^(2 i / head width) of a radian a position.")
      .range(1, 1e12)
      .when(has_rotary)
      .elsewhere("transformers: rope_theta; Megatron-LM: --rotary-base");
  list.advanced(ACCRUE_FIELD(model.rotary_scaling), "Rotary scaling",
                "Slows the low frequencies down, so that longer texts fit: factor, low and high frequency factor, and "
                "the context before, as in Llama 3 [8, 1, 4, 8192]. Empty: no scaling.")
      .when(has_rotary)
      .elsewhere("transformers: rope_scaling with rope_type llama3");
  list.advanced(ACCRUE_FIELD(model.qkv_bias), "Bias of queries, keys, values",
                "Whether the layer that makes them has a bias. Left out: as bias.")
      .when(is_decoder)
      .elsewhere("transformers: attention_bias; Megatron-LM: --add-qkv-bias");
  list.advanced(ACCRUE_FIELD(model.tied_head), "Tied head",
                "Whether the head's matrix is the token embedding. Left out: true for a GPT, false for a Llama.")
      .when(is_decoder)
      .elsewhere("transformers: tie_word_embeddings; Megatron-LM: --untie-embeddings-and-output-weights");
}

void add_dense_fields(FieldList& list) {
  list.add(
          ACCRUE_FIELD(model.inputs), "Inputs",
          "Input features: the numbers in one sample's x. 1 for sequences, where each number is a position of its own.")
      .range(1, 1048576)
      .when(is_dense)
      .elsewhere("PyTorch: in_features");
  list.add(ACCRUE_FIELD(model.outputs), "Outputs", "Output features: columns of y, or classes with cross-entropy.")
      .range(1, 1048576)
      .when(is_dense)
      .elsewhere("PyTorch: out_features");
  list.add(ACCRUE_FIELD(model.hidden), "Hidden widths",
           "Widths of the hidden layers from input to output; an empty list leaves a linear model.")
      .range(1, 1048576)
      .when(is_mlp)
      .elsewhere("scikit-learn: hidden_layer_sizes");
  list.advanced(ACCRUE_FIELD(model.batch_norm), "Batch norm",
                "Whether the outputs of each hidden layer are normalised over the micro-batch, without parameters and "
                "without running statistics. An accumulated update then never equals that of one large batch.")
      .when([](const RunSpec& spec) { return spec.model.kind == ModelKind::mlp; });
  list.add(ACCRUE_FIELD(model.activation), "Activation",
           "Function after each hidden layer of an mlp (left out: relu), or in the inner layer of a block (left out: "
           "gelu_tanh for a GPT, swiglu for a Llama). swiglu: the product of two layers, one of them after silu; for "
           "blocks only.")
      .when(has_activation)
      .elsewhere("transformers: hidden_act, activation_function; Megatron-LM: --swiglu");
  list.add(ACCRUE_FIELD(model.bias), "Bias", "Whether the layers have a bias. Left out: true but for a Llama.")
      .when(is_dense_or_decoder)
      .elsewhere("Megatron-LM: --disable-bias-linear");
}

}  // namespace

void add_model_fields(FieldList& list) {
  list.add(ACCRUE_FIELD(model.kind), "Model",
           "What is trained: one linear layer, a multi-layer perceptron, a GPT (pre-norm transformer decoder with "
           "learned positions and a head tied to the token embedding), a Llama (a decoder with RMS norms, rotary "
           "positions, SwiGLU, no biases and a head of its own), a BERT (an encoder that fills in masked tokens) or a "
           "T5 (an encoder and a decoder that writes what was masked).")
      .elsewhere("transformers: model_type");
  list.add(ACCRUE_FIELD(model.dtype), "Number type",
           "Type of parameters and activations. On a CPU float32 is fastest; float64 is for exact comparisons.")
      .elsewhere(
          "PyTorch: dtype, autocast; transformers: torch_dtype, fp16, bf16; Accelerate: mixed_precision; Lightning: "
          "precision; Megatron-LM: --fp16, --bf16");
  add_transformer_fields(list);
  add_form_fields(list);
  add_dense_fields(list);
  list.advanced(ACCRUE_FIELD(model.init), "Initial weights",
                "torch: the framework's own rule for each layer; zeros; normal: standard deviation 0.02, biases 0; "
                "values: the numbers of model.values; checkpoint: the folder that model.weights names.")
      .elsewhere("transformers: from_pretrained; Megatron-LM: --init-method-std");
  list.add(ACCRUE_FIELD(model.weights), "Weights to start from",
           "With init = \"checkpoint\": a folder in Hugging Face's layout (config.json and safetensors; GPT-2, Llama, "
           "Mistral, Qwen2), the folder of a run that has ended, or one of its checkpoints. It sets the keys of the "
           "model; the new run begins at update 0.")
      .when([](const RunSpec& spec) { return spec.model.init == WeightInit::checkpoint; })
      .elsewhere("transformers: from_pretrained; LLaMA-Factory: model_name_or_path");
  list.advanced(ACCRUE_FIELD(model.values), "Given weights",
                "With init = \"values\": for each layer its weight row by row [outputs, inputs], then its bias.")
      .when([](const RunSpec& spec) { return spec.model.init == WeightInit::values; });
  list.advanced(ACCRUE_FIELD(model.loss), "Loss",
                "mse: mean over samples and outputs. cross_entropy: sum over the positions whose label is not -100, "
                "divided by their number. Left out: cross_entropy for models of tokens, mse otherwise.")
      .elsewhere("Keras: loss");
}

}  // namespace accrue::field_detail
