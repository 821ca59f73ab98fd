// SPDX-License-Identifier: Apache-2.0
// Vector loops that PyTorch's operators do not offer in one pass. The loops are plain C++ in *.inl.h, compiled once per
// instruction set (isa_*.cpp) and selected once per process by the CPU. So one build runs everywhere, and a machine
// always takes the same path. Nothing here allocates, throws or starts threads.
#pragma once

#include <cstdint>

namespace accrue {

/// Factors of one update, in double; a kernel rounds them once to the type that it computes in. grad_scale is the
/// division of a window's sum and the clip factor in one. The rules are in element_rules.inl.h.
struct AdamWStep {
  double lr = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double eps = 0.0;
  double weight_decay = 0.0;      ///< decoupled from the gradient (AdamW)
  double l2 = 0.0;                ///< added to the gradient (Adam)
  double correction1 = 1.0;       ///< 1 - beta1^t
  double correction2_root = 1.0;  ///< sqrt(1 - beta2^t)
  double grad_scale = 1.0;
};

/// PyTorch's SGD without dampening and Nesterov's look-ahead, which FusedSgdStep has.
struct SgdStep {
  double lr = 0.0;
  double momentum = 0.0;
  double weight_decay = 0.0;
  double grad_scale = 1.0;
};

/// Adam with the moments corrected before the root, and related rules. With u = (m / correction1) / (sqrt(v /
/// correction2) + eps) + weight_decay * p, FusedAdam's step is lr * u and LAMB's is lr * |p| / |u| * u.
struct MomentsStep {
  double lr = 0.0;
  double beta1 = 0.0;
  double take1 = 0.0;  ///< the gradient's factor in the first moment: 1 - beta1, or 1 without averaging
  double beta2 = 0.0;
  double eps = 0.0;
  double weight_decay = 0.0;  ///< decoupled from the gradient
  double l2 = 0.0;            ///< added to the gradient
  double correction1 = 1.0;   ///< 1 - beta1^t
  double correction2 = 1.0;   ///< 1 - beta2^t
  double grad_scale = 1.0;
};

/// SGD with dampening, Nesterov's look-ahead and decay on either side of the momentum, as colossalai's FusedSGD has it.
struct FusedSgdStep {
  double lr = 0.0;
  double keep = 0.0;  ///< factor of the buffer: the momentum; 0 in a parameter's first update
  double take = 1.0;  ///< factor of the gradient: 1 - dampening; 1 in a parameter's first update
  double momentum = 0.0;
  bool nesterov = false;
  double l2 = 0.0;            ///< added to the gradient
  double weight_decay = 0.0;  ///< added after the momentum
  double grad_scale = 1.0;
};

/// Momentum at a parameter's own rate. All that depends on its norms is in lr.
struct LarsStep {
  double lr = 0.0;  ///< multiplied by the parameter's trust ratio
  double momentum = 0.0;
  double weight_decay = 0.0;
  double grad_scale = 1.0;
};

/// Sums of squares of a parameter and of the divisor in its trust ratio: |p|^2, and |u|^2 in LAMB or |g|^2 in LARS.
/// They are sums rather than norms, because parts of a parameter add up.
struct SquareSums {
  double params = 0.0;
  double steps = 0.0;
};

template <typename T>
struct FlatKernels {
  /// Decoupled weight decay, then Adam. params, first and second are updated in place; n elements each.
  void (*adamw)(T* params, const T* grads, T* first, T* second, std::int64_t n, const AdamWStep& step);
  /// buffer may be null if momentum is 0.
  void (*sgd)(T* params, const T* grads, T* buffer, std::int64_t n, const SgdStep& step);
  void (*fused_adam)(T* params, const T* grads, T* first, T* second, std::int64_t n, const MomentsStep& step);
  /// The first half of a LAMB step: computes new moments, and returns the sums of squares of p and u. params are only
  /// read.
  SquareSums (*lamb_moments)(const T* params, const T* grads, T* first, T* second, std::int64_t n,
                             const MomentsStep& step);
  /// The second half: params -= rate * u. Recomputes u from the moments, which needs less memory than storing it.
  void (*lamb_apply)(T* params, const T* first, const T* second, std::int64_t n, const MomentsStep& step, double rate);
  /// buffer may be null if momentum is 0.
  void (*fused_sgd)(T* params, const T* grads, T* buffer, std::int64_t n, const FusedSgdStep& step);
  /// d = the decayed gradient clamped to [-10, 10]; buffer = momentum * buffer + d; params -= lr * buffer. buffer may
  /// be null if momentum is 0.
  void (*lars)(T* params, const T* grads, T* buffer, std::int64_t n, const LarsStep& step);
  /// Sum of squares, accumulated in double.
  double (*square_sum)(const T* values, std::int64_t n);
};

template <typename T>
const FlatKernels<T>& flat_kernels();

/// Conversions between half precision and float32, n elements each; to the nearest, ties to even. The bits are in
/// std::uint16_t.
struct HalfKernels {
  void (*from_half)(const std::uint16_t* from, float* to, std::int64_t n);
  void (*to_half)(const float* from, std::uint16_t* to, std::int64_t n);
  void (*from_bfloat16)(const std::uint16_t* from, float* to, std::int64_t n);
  void (*to_bfloat16)(const float* from, std::uint16_t* to, std::int64_t n);
};

const HalfKernels& half_kernels();

/// One head of causal attention inside packed activations: in qkv [B, T, 3 D] qkv_stride is 3 D, in out [B, T, D]
/// out_stride is D. So a head is read and written in place, as rows [T, size].
struct HeadShape {
  std::int64_t positions = 0;
  std::int64_t size = 0;        ///< head size: numbers of one head
  std::int64_t qkv_stride = 0;  ///< distance between the queries (keys, values) of successive positions
  std::int64_t out_stride = 0;
};

/// Pointers of one head; the biases have `size` numbers.
template <typename T>
struct HeadInputs {
  const T* q;
  const T* k;
  const T* v;
  const T* q_bias;
  const T* k_bias;
  const T* v_bias;
};

/// c = a b, or c += a b. a is [m, k], b is [k, n] with any strides, c is [m, n] row-major.
template <typename T>
struct GemmTask {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_column;
  const T* b;
  std::int64_t b_row, b_column;
  T* c;
  std::int64_t c_stride;
  bool add;
};

/// A block of a product: rows from i, columns from j, depth from k.
struct GemmPart {
  std::int64_t i = 0, rows = 0;
  std::int64_t j = 0, columns = 0;
  std::int64_t k = 0, depth = 0;
};

/// Parts of a transformer block. Matrices are row-major [rows, width] without gaps; sums over rows are accumulated.
template <typename T>
struct BlockKernels {
  /// Stores mean and scale (1 / standard deviation) for backward, one number per row. Shapes: x, out [rows, width];
  /// weight, bias [width]; mean, scale [rows].
  void (*layer_norm_forward)(const T* x, const T* weight, const T* bias, std::int64_t rows, std::int64_t width,
                             double eps, T* out, T* mean, T* scale);
  /// The same from a stored mean and scale: backward recomputes the norm's output instead of keeping it.
  void (*layer_norm_apply)(const T* x, const T* weight, const T* bias, const T* mean, const T* scale, std::int64_t rows,
                           std::int64_t width, T* out);
  /// dx = dy + the norm's own gradient of dn; accumulates into dweight, dbias and dy_sum [width].
  void (*layer_norm_backward)(const T* dn, const T* x, const T* weight, const T* mean, const T* scale, const T* dy,
                              std::int64_t rows, std::int64_t width, T* dx, T* dweight, T* dbias, T* dy_sum);
  /// out = x + bias.
  void (*add_bias)(const T* x, const T* bias, std::int64_t rows, std::int64_t width, T* out);
  /// sum += the rows of x: the gradient of a bias, [width].
  void (*column_sum)(const T* x, std::int64_t rows, std::int64_t width, T* sum);
  /// x += bias; out = gelu(x).
  void (*gelu_forward)(T* x, const T* bias, std::int64_t rows, std::int64_t width, T* out);
  /// grad, that of gelu(x), becomes the gradient of x; out = gelu(x); accumulates into grad_sum [width].
  void (*gelu_backward)(const T* x, std::int64_t rows, std::int64_t width, T* grad, T* out, T* grad_sum);
  /// Returns the numbers of scratch that one call of the two below needs.
  std::int64_t (*attention_scratch)(const HeadShape& shape);
  /// q, k, v and out are the head's [T, size] by HeadShape's strides; log_sums [T], the logarithm of each query's
  /// softmax sum, is all that backward needs beside them.
  void (*attention_forward)(const HeadShape& shape, const HeadInputs<T>& in, T* out, T* log_sums, T* scratch);
  void (*attention_backward)(const HeadShape& shape, const HeadInputs<T>& in, const T* out, const T* log_sums,
                             const T* dout, T* dq, T* dk, T* dv, T* scratch);
  /// Returns the sum of the rows' losses; logits [rows, classes] become their gradient, not yet divided: a
  /// factor comes with the backward. Rows whose target is `ignored` count nothing.
  double (*cross_entropy)(T* logits, const std::int64_t* targets, std::int64_t rows, std::int64_t classes,
                          std::int64_t ignored);
  /// Packs b's part into [round_up(columns, tile_columns) * depth] numbers.
  void (*gemm_pack)(const GemmTask<T>& task, const GemmPart& part, T* packed);
  /// Adds one part from packed b; packed_a takes [(rows + tile_rows) * depth + 16] numbers. Parts with k = 0 come
  /// first.
  void (*gemm_rows)(const GemmTask<T>& task, const GemmPart& part, const T* packed_b, T* packed_a);
  std::int64_t tile_rows;
  std::int64_t tile_columns;
};

template <typename T>
const BlockKernels<T>& block_kernels();

enum class InstructionSet { generic, avx2, avx512 };

/// Returns the instruction set of the kernels: the best of this CPU, or a lesser one after limit_instruction_set().
InstructionSet instruction_set();
/// Rendezvous::join() calls it with the least of the ranks' sets, before the first kernel runs. Rounding and the choice
/// of a product's path depend on it.
void limit_instruction_set(InstructionSet most);
/// "AVX512", "AVX2" or "generic".
const char* name_of(InstructionSet set);

/// Whether our tiles are faster than LibTorch's matrix products on this CPU: it has AVX-512 and is not an Intel CPU, on
/// which LibTorch's are faster (see models/product.h).
bool tiles_pay();
/// Makes LibTorch compute the products from now on, because tiles do not pay on some rank's CPU.
void leave_products_to_library();

}  // namespace accrue
