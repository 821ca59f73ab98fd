// SPDX-License-Identifier: Apache-2.0
#include "accrue/parallel/random_streams.h"

#include <ATen/Context.h>

#include <mutex>
#include <stdexcept>
#include <utility>

namespace accrue {
namespace {

std::string key_of(const std::string& name, at::Device device) {
  return name + " on " + device.str();
}

}  // namespace

void seed_generator(at::Generator generator, std::uint64_t seed) {
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(seed);
}

at::Tensor generator_state(at::Generator generator) {
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(at::Generator generator, const at::Tensor& state) {
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

void RandomStreams::seed(const std::string& name, at::Device device, std::uint64_t seed) {
  const auto [place, added] = streams_.try_emplace(key_of(name, device));
  if (added) place->second = at::globalContext().defaultGenerator(device).clone();
  seed_generator(place->second, seed);
}

RandomStreams::Fork RandomStreams::fork(const std::string& name, at::Device device) {
  const auto found = streams_.find(key_of(name, device));
  if (found == streams_.end()) throw std::invalid_argument("there is no random stream " + key_of(name, device));
  return {at::globalContext().defaultGenerator(device), found->second};
}

// Operators draw from the default generator, so a stream takes its place for a while and keeps its state afterwards.
RandomStreams::Fork::Fork(at::Generator standard, at::Generator stream)
    : standard_(std::move(standard)), stream_(std::move(stream)), kept_(generator_state(standard_)) {
  set_generator_state(standard_, generator_state(stream_));
}

RandomStreams::Fork::~Fork() {
  set_generator_state(stream_, generator_state(standard_));
  set_generator_state(standard_, kept_);
}

RandomStreams::State RandomStreams::state(at::Device device) const {
  at::Generator standard = at::globalContext().defaultGenerator(device);
  State state{{standard, generator_state(standard)}};
  for (const auto& [name, stream] : streams_) {
    at::Generator generator = stream;
    if (generator.device() == standard.device()) state.emplace_back(generator, generator_state(generator));
  }
  return state;
}

RandomStreams::Replay::Replay(const State& state) {
  for (auto [generator, begin] : state) {
    kept_.emplace_back(generator, generator_state(generator));
    set_generator_state(generator, begin);
  }
}

RandomStreams::Replay::~Replay() {
  for (auto& [generator, stood] : kept_) set_generator_state(generator, stood);
}

RandomStreams& random_streams() {
  static RandomStreams streams;
  return streams;
}

}  // namespace accrue
