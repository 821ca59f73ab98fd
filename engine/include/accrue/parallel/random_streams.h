// SPDX-License-Identifier: Apache-2.0
// Named random streams beside a device's default generator, which LibTorch's dropout uses. Ranks that hold different
// parts of an activation draw its mask from streams with different seeds. The mask of an activation that all ranks hold
// comes from the default generator, which has the same seed everywhere.
//
// Thread: training. Source: Megatron-LM's random-number-generator tracker.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace accrue {

/// Reseeds a generator.
void seed_generator(at::Generator generator, std::uint64_t seed);
/// State of a generator: read and set.
at::Tensor generator_state(at::Generator generator);
void set_generator_state(at::Generator generator, const at::Tensor& state);

class RandomStreams {
 public:
  /// Reseeds the stream; creates it if it does not exist.
  void seed(const std::string& name, at::Device device, std::uint64_t seed);

  /// While it lives, the device's default generator draws from the stream.
  class Fork {
   public:
    Fork(at::Generator standard, at::Generator stream);
    ~Fork();
    Fork(const Fork&) = delete;
    Fork& operator=(const Fork&) = delete;

   private:
    at::Generator standard_;
    at::Generator stream_;
    at::Tensor kept_;  ///< state of the default generator
  };
  /// Errors: throws std::invalid_argument if seed() never made the stream.
  [[nodiscard]] Fork fork(const std::string& name, at::Device device);

  /// States of generators.
  using State = std::vector<std::pair<at::Generator, at::Tensor>>;
  /// Returns the states of the device's default generator and all of its streams.
  State state(at::Device device) const;

  /// While it lives, generators repeat what they drew from that state on; then their present state is restored.
  class Replay {
   public:
    explicit Replay(const State& state);
    ~Replay();
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;

   private:
    State kept_;
  };

 private:
  std::map<std::string, at::Generator> streams_;  ///< by name and device
};

/// Streams of this process, like the default generators.
RandomStreams& random_streams();

/// Name of the stream for numbers that differ between tensor-parallel ranks.
inline constexpr const char* tensor_stream = "tensor";

}  // namespace accrue
