// SPDX-License-Identifier: Apache-2.0
// Each kind's options and fields are listed once, for making, saving and loading. A load first builds the whole new
// state and then installs it, so that nothing is half loaded; the moments exist twice meanwhile.
#include "optimizer_state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "accrue/optim/cpu_adam.h"
#include "accrue/optim/fused_adam.h"
#include "accrue/optim/fused_lamb.h"
#include "accrue/optim/fused_sgd.h"
#include "accrue/optim/hybrid_adam.h"
#include "accrue/optim/lamb.h"
#include "accrue/optim/lars.h"
#include "accrue/optim/param_state.h"

namespace accrue {
namespace {

using Betas = std::tuple<double, double>;

template <typename OptimizerOf, typename OptionsOf, typename StateOf>
struct Kind {
  using Optimizer = OptimizerOf;
  using Options = OptionsOf;
  using State = StateOf;
};

struct Sgd : Kind<torch::optim::SGD, torch::optim::SGDOptions, torch::optim::SGDParamState> {
  static constexpr const char* name = "SGD";
  template <typename F>
  static void options(Options& of, F&& f) {
    f("lr", of.lr());
    f("momentum", of.momentum());
    f("dampening", of.dampening());
    f("weight_decay", of.weight_decay());
    f("nesterov", of.nesterov());
  }
  /// f(name, field, whether an update needs it)
  template <typename F>
  static void state(const Options& /*options*/, State& of, F&& f) {
    f("momentum_buffer", of.momentum_buffer(), false);
  }
};

template <typename... Types>
struct AdamFamily : Kind<Types...> {
  template <typename F>
  static void options(auto& of, F&& f) {
    f("lr", of.lr());
    f("betas", of.betas());
    f("eps", of.eps());
    f("weight_decay", of.weight_decay());
    f("amsgrad", of.amsgrad());
  }
  template <typename F>
  static void state(const auto& options, auto& of, F&& f) {
    f("step", of.step(), true);
    f("exp_avg", of.exp_avg(), true);
    f("exp_avg_sq", of.exp_avg_sq(), true);
    f("max_exp_avg_sq", of.max_exp_avg_sq(), options.amsgrad());
  }
};

struct Adam : AdamFamily<torch::optim::Adam, torch::optim::AdamOptions, torch::optim::AdamParamState> {
  static constexpr const char* name = "Adam";
};

struct AdamW : AdamFamily<torch::optim::AdamW, torch::optim::AdamWOptions, torch::optim::AdamWParamState> {
  static constexpr const char* name = "AdamW";
};

struct RmsProp : Kind<torch::optim::RMSprop, torch::optim::RMSpropOptions, torch::optim::RMSpropParamState> {
  static constexpr const char* name = "RMSprop";
  template <typename F>
  static void options(Options& of, F&& f) {
    f("lr", of.lr());
    f("alpha", of.alpha());
    f("eps", of.eps());
    f("weight_decay", of.weight_decay());
    f("momentum", of.momentum());
    f("centered", of.centered());
  }
  template <typename F>
  static void state(const Options& options, State& of, F&& f) {
    f("step", of.step(), true);
    f("square_avg", of.square_avg(), true);
    f("momentum_buffer", of.momentum_buffer(), options.momentum() > 0);
    f("grad_avg", of.grad_avg(), options.centered());
  }
};

struct Adagrad : Kind<torch::optim::Adagrad, torch::optim::AdagradOptions, torch::optim::AdagradParamState> {
  static constexpr const char* name = "Adagrad";
  template <typename F>
  static void options(Options& of, F&& f) {
    f("lr", of.lr());
    f("lr_decay", of.lr_decay());
    f("weight_decay", of.weight_decay());
    f("initial_accumulator_value", of.initial_accumulator_value());
    f("eps", of.eps());
  }
  template <typename F>
  static void state(const Options& /*options*/, State& of, F&& f) {
    f("step", of.step(), true);
    f("sum", of.sum(), true);
  }
};

/// Colossal-AI's optimizers.
template <typename... Types>
struct MomentsFamily : Kind<Types..., MomentsParamState> {
  template <typename F>
  static void state(const auto& /*options*/, MomentsParamState& of, F&& f) {
    f("step", of.step(), true);
    f("exp_avg", of.exp_avg(), true);
    f("exp_avg_sq", of.exp_avg_sq(), true);
  }
};

template <typename... Types>
struct MomentumFamily : Kind<Types..., MomentumParamState> {
  template <typename F>
  static void state(const auto& /*options*/, MomentumParamState& of, F&& f) {
    f("momentum_buffer", of.momentum_buffer(), false);
  }
};

/// The place of the states is not part of them.
template <typename... Types>
struct CpuAdamFamily : MomentsFamily<Types...> {
  template <typename F>
  static void options(auto& of, F&& f) {
    f("lr", of.lr());
    f("bias_correction", of.bias_correction());
    f("betas", of.betas());
    f("eps", of.eps());
    f("weight_decay", of.weight_decay());
    f("adamw_mode", of.adamw_mode());
  }
};

struct CpuAdam : CpuAdamFamily<accrue::CPUAdam, CPUAdamOptions> {
  static constexpr const char* name = "CPUAdam";
};

struct Hybrid : CpuAdamFamily<accrue::HybridAdam, HybridAdamOptions> {
  static constexpr const char* name = "HybridAdam";
};

struct FusedAdamKind : MomentsFamily<accrue::FusedAdam, FusedAdamOptions> {
  static constexpr const char* name = "FusedAdam";
  template <typename F>
  static void options(Options& of, F&& f) {
    f("lr", of.lr());
    f("bias_correction", of.bias_correction());
    f("betas", of.betas());
    f("eps", of.eps());
    f("weight_decay", of.weight_decay());
    f("adamw_mode", of.adamw_mode());
    f("step", of.step());
  }
};

struct FusedLambKind : MomentsFamily<accrue::FusedLAMB, FusedLAMBOptions> {
  static constexpr const char* name = "FusedLAMB";
  template <typename F>
  static void options(Options& of, F&& f) {
    f("lr", of.lr());
    f("bias_correction", of.bias_correction());
    f("betas", of.betas());
    f("eps", of.eps());
    f("weight_decay", of.weight_decay());
    f("adam_w_mode", of.adam_w_mode());
    f("grad_averaging", of.grad_averaging());
    f("max_grad_norm", of.max_grad_norm());
    f("use_nvlamb", of.use_nvlamb());
    f("step", of.step());
  }
};

struct LambKind : MomentsFamily<accrue::Lamb, LambOptions> {
  static constexpr const char* name = "Lamb";
  template <typename F>
  static void options(Options& of, F&& f) {
    f("lr", of.lr());
    f("betas", of.betas());
    f("eps", of.eps());
    f("weight_decay", of.weight_decay());
    f("adam", of.adam());
    f("bias_correction", of.bias_correction());
  }
};

struct FusedSgdKind : MomentumFamily<accrue::FusedSGD, FusedSGDOptions> {
  static constexpr const char* name = "FusedSGD";
  template <typename F>
  static void options(Options& of, F&& f) {
    f("lr", of.lr());
    f("momentum", of.momentum());
    f("dampening", of.dampening());
    f("weight_decay", of.weight_decay());
    f("nesterov", of.nesterov());
    f("wd_after_momentum", of.wd_after_momentum());
  }
};

struct LarsKind : MomentumFamily<accrue::Lars, LarsOptions> {
  static constexpr const char* name = "Lars";
  template <typename F>
  static void options(Options& of, F&& f) {
    f("lr", of.lr());
    f("momentum", of.momentum());
    f("eeta", of.eeta());
    f("weight_decay", of.weight_decay());
    f("epsilon", of.epsilon());
    f("lars", of.lars());
  }
};

/// Calls f with the optimizer's kind.
template <typename F>
auto with_kind(const torch::optim::Optimizer& optimizer, F&& f) {
  if (dynamic_cast<const torch::optim::SGD*>(&optimizer) != nullptr) return f(Sgd{});
  if (dynamic_cast<const torch::optim::Adam*>(&optimizer) != nullptr) return f(Adam{});
  if (dynamic_cast<const torch::optim::AdamW*>(&optimizer) != nullptr) return f(AdamW{});
  if (dynamic_cast<const torch::optim::RMSprop*>(&optimizer) != nullptr) return f(RmsProp{});
  if (dynamic_cast<const torch::optim::Adagrad*>(&optimizer) != nullptr) return f(Adagrad{});
  if (dynamic_cast<const accrue::CPUAdam*>(&optimizer) != nullptr) return f(CpuAdam{});
  if (dynamic_cast<const accrue::HybridAdam*>(&optimizer) != nullptr) return f(Hybrid{});
  if (dynamic_cast<const accrue::FusedAdam*>(&optimizer) != nullptr) return f(FusedAdamKind{});
  if (dynamic_cast<const accrue::FusedLAMB*>(&optimizer) != nullptr) return f(FusedLambKind{});
  if (dynamic_cast<const accrue::Lamb*>(&optimizer) != nullptr) return f(LambKind{});
  if (dynamic_cast<const accrue::FusedSGD*>(&optimizer) != nullptr) return f(FusedSgdKind{});
  if (dynamic_cast<const accrue::Lars*>(&optimizer) != nullptr) return f(LarsKind{});
  throw std::invalid_argument(
      "the state of this optimizer is not known: it is none of SGD, Adam, AdamW, RMSprop, Adagrad, CPUAdam, "
      "FusedAdam, FusedLAMB, FusedSGD, HybridAdam, Lamb and Lars; give a BaseOptimizer of your own, whose state_dict() "
      "says what it holds");
}

at::Tensor text_tensor(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), static_cast<char*>(bytes.mutable_data_ptr()));
  return bytes;
}

std::string text_of(const at::Tensor& bytes) {
  if (bytes.scalar_type() != at::kByte) return {};
  const at::Tensor packed = bytes.cpu().contiguous();
  return {static_cast<const char*>(packed.const_data_ptr()), static_cast<std::size_t>(packed.numel())};
}

std::string group_entry(std::size_t group, const std::string& field) {
  return "group." + std::to_string(group) + "." + field;
}

std::string state_entry(std::size_t parameter) {
  return "state." + std::to_string(parameter) + ".";
}

/// Writes an option as numbers: one, or two for betas.
template <typename Option>
std::vector<double> numbers_of(const Option& option) {
  if constexpr (std::is_same_v<Option, Betas>)
    return {std::get<0>(option), std::get<1>(option)};
  else
    return {static_cast<double>(option)};
}
template <typename Option>
void assign(Option& option, const std::vector<double>& numbers) {
  if constexpr (std::is_same_v<Option, Betas>)
    option = {numbers.at(0), numbers.at(1)};
  else
    option = static_cast<Option>(numbers.at(0));
}

[[noreturn]] void misfit(const std::string& name, const std::string& why) {
  throw std::invalid_argument("the state's entry \"" + name + "\" does not fit this optimizer: " + why);
}

std::vector<double> numbers_under(const StateDict& state, const std::string& name, std::size_t count) {
  const at::Tensor& saved = tensor_of(state, name);
  if (saved.numel() != static_cast<std::int64_t>(count))
    misfit(name, count == 1 ? "it is one number" : "it is two numbers");
  const at::Tensor numbers = saved.reshape({-1}).to(at::kCPU, at::kDouble);
  const auto* first = numbers.const_data_ptr<double>();
  return {first, first + count};
}

/// Saves a field of one parameter's state; the second function loads it.
void save(StateDict& state, const std::string& name, std::int64_t value) {
  state[name] = state_number(value);
}
void save(StateDict& state, const std::string& name, const at::Tensor& value) {
  if (value.defined()) state[name] = value.detach().clone();
}
void take(const StateDict& state, const std::string& name, const at::Tensor& /*parameter*/, std::int64_t& value,
          bool /*needed*/) {
  value = integer_of(state, name);
  if (value < 0) misfit(name, "it is negative");
}
void take(const StateDict& state, const std::string& name, const at::Tensor& parameter, at::Tensor& value,
          bool needed) {
  if (!needed && !state.contains(name)) return;
  const at::Tensor& saved = tensor_of(state, name);
  if (saved.sizes() != parameter.sizes()) misfit(name, "its shape is not the parameter's");
  if (!saved.is_floating_point()) misfit(name, "it holds no real numbers");
  value = saved.detach().to(parameter.device(), /*dtype=*/saved.scalar_type(), false, /*copy=*/true);
}

template <typename Kind>
const typename Kind::Options& options_of(const torch::optim::OptimizerParamGroup& group) {
  return static_cast<const typename Kind::Options&>(group.options());
}

template <typename Kind>
void save_group(StateDict& state, std::size_t g, const torch::optim::OptimizerParamGroup& group) {
  state[group_entry(g, "parameters")] = state_number(static_cast<std::int64_t>(group.params().size()));
  typename Kind::Options options = options_of<Kind>(group);
  Kind::options(options, [&](const char* field, const auto& value) {
    const auto numbers = numbers_of(value);
    state[group_entry(g, field)] = numbers.size() == 1 ? state_number(numbers[0]) : at::tensor(numbers, at::kDouble);
  });
}

template <typename Kind>
typename Kind::Options loaded_options(const StateDict& state, std::size_t g,
                                      const torch::optim::OptimizerParamGroup& group) {
  const std::string count = group_entry(g, "parameters");
  if (integer_of(state, count) != static_cast<std::int64_t>(group.params().size()))
    misfit(count, "the group has " + std::to_string(group.params().size()) + " parameters");
  typename Kind::Options options = options_of<Kind>(group);
  Kind::options(options, [&](const char* field, auto& value) {
    assign(value, numbers_under(state, group_entry(g, field), numbers_of(value).size()));
  });
  return options;
}

/// Null if the parameter has no entry.
template <typename Kind>
std::unique_ptr<torch::optim::OptimizerParamState> loaded_state(const StateDict& state, std::size_t p,
                                                                const at::Tensor& parameter,
                                                                const typename Kind::Options& options) {
  const std::string begin = state_entry(p);
  const auto first = state.lower_bound(begin);
  if (first == state.end() || !first->first.starts_with(begin)) return nullptr;
  auto loaded = std::make_unique<typename Kind::State>();
  Kind::state(options, *loaded, [&](const char* field, auto& value, bool needed) {
    take(state, begin + field, parameter, value, needed);
  });
  return loaded;
}

template <typename Option>
void print(std::ostream& out, const Option& option) {
  const auto numbers = numbers_of(option);
  if constexpr (std::is_same_v<Option, bool>)
    out << (option ? "true" : "false");
  else if (numbers.size() == 1)
    out << numbers[0];
  else
    out << '(' << numbers[0] << ", " << numbers[1] << ')';
}

/// Null if the configuration is of another kind. Only LibTorch's SGD has no default rate; Python's is 1e-3.
template <typename Kind>
std::shared_ptr<BaseOptimizer> built(const std::vector<at::Tensor>& parameters, const OptimizerConfig& config) {
  if (config.type != Kind::name) return nullptr;
  typename Kind::Options options(1e-3);
  if constexpr (std::is_default_constructible_v<typename Kind::Options>) options = typename Kind::Options();
  std::string names;
  std::size_t taken = 0;
  Kind::options(options, [&](const char* name, auto& value) {
    names += (names.empty() ? "" : ", ") + std::string(name);
    const auto found = config.settings.find(name);
    if (found == config.settings.end()) return;
    const std::size_t numbers = numbers_of(value).size();
    if (found->second.size() != numbers)
      throw std::invalid_argument("build_optimizer: " + config.type + "'s " + name + " takes " +
                                  std::to_string(numbers) + " numbers, not " + std::to_string(found->second.size()));
    assign(value, found->second);
    ++taken;
  });
  if (taken != config.settings.size())
    throw std::invalid_argument("build_optimizer: " + config.type + " has the settings " + names +
                                "; the configuration names others");
  struct Owner {
    Owner(const std::vector<at::Tensor>& params, const typename Kind::Options& how)
        : optimizer(params, how), wrapped(wrap(optimizer)) {}
    typename Kind::Optimizer optimizer;
    std::shared_ptr<BaseOptimizer> wrapped;
  };
  const auto owner = std::make_shared<Owner>(parameters, options);
  return {owner, owner->wrapped.get()};
}

}  // namespace

std::shared_ptr<BaseOptimizer> build_optimizer(const std::vector<at::Tensor>& parameters,
                                               const OptimizerConfig& config) {
  for (const auto build :
       {built<Sgd>, built<Adam>, built<AdamW>, built<RmsProp>, built<Adagrad>, built<CpuAdam>, built<Hybrid>,
        built<FusedAdamKind>, built<FusedLambKind>, built<LambKind>, built<FusedSgdKind>, built<LarsKind>})
    if (auto optimizer = build(parameters, config)) return optimizer;
  throw std::invalid_argument(
      "build_optimizer: there is no optimizer of type \"" + config.type +
      "\"; there are SGD, Adam, AdamW, RMSprop, Adagrad, CPUAdam, FusedAdam, FusedLAMB, FusedSGD, "
      "HybridAdam, Lamb and Lars");
}

std::string optimizer_text(const torch::optim::Optimizer& optimizer) {
  return with_kind(optimizer, [&]<typename Kind>(Kind) {
    std::ostringstream out;
    out << Kind::name << " (";
    for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
      const auto& group = optimizer.param_groups()[g];
      out << "\nParameter Group " << g << ": " << group.params().size() << " parameters";
      typename Kind::Options options = options_of<Kind>(group);
      Kind::options(options, [&](const char* field, const auto& value) {
        out << "\n    " << field << ": ";
        print(out, value);
      });
    }
    out << "\n)";
    return out.str();
  });
}

StateDict optimizer_options(const torch::optim::Optimizer& optimizer) {
  return with_kind(optimizer, [&]<typename Kind>(Kind) {
    StateDict options{{"kind", text_tensor(Kind::name)}};
    for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g)
      save_group<Kind>(options, g, optimizer.param_groups()[g]);
    return options;
  });
}

StateDict optimizer_state(const torch::optim::Optimizer& optimizer) {
  return with_kind(optimizer, [&]<typename Kind>(Kind) {
    StateDict state = optimizer_options(optimizer);
    std::size_t p = 0;
    for (const auto& group : optimizer.param_groups()) {
      for (const at::Tensor& parameter : group.params()) {
        const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
        const std::string begin = state_entry(p++);
        if (found == optimizer.state().end()) continue;
        auto copy = static_cast<const typename Kind::State&>(*found->second);
        Kind::state(options_of<Kind>(group), copy,
                    [&](const char* field, const auto& value, bool) { save(state, begin + field, value); });
      }
    }
    return state;
  });
}

void load_optimizer_state(torch::optim::Optimizer& optimizer, const StateDict& state) {
  with_kind(optimizer, [&]<typename Kind>(Kind) {
    if (const std::string saved = text_of(tensor_of(state, "kind")); saved != Kind::name)
      misfit("kind", "it is of " + (saved.empty() ? "nothing known" : saved) + ", and this is " + Kind::name);
    auto& groups = optimizer.param_groups();
    if (state.contains(group_entry(groups.size(), "parameters")))
      misfit(group_entry(groups.size(), "parameters"), "there are " + std::to_string(groups.size()) + " groups");
    std::vector<typename Kind::Options> options;
    std::vector<std::pair<void*, std::unique_ptr<torch::optim::OptimizerParamState>>> loaded;
    std::size_t p = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      options.push_back(loaded_options<Kind>(state, g, groups[g]));
      for (const at::Tensor& parameter : groups[g].params())
        if (auto each = loaded_state<Kind>(state, p++, parameter, options.back()))
          loaded.emplace_back(parameter.unsafeGetTensorImpl(), std::move(each));
    }
    // Nothing can fail from here on.
    optimizer.state().clear();
    for (auto& [key, each] : loaded) optimizer.state()[key] = std::move(each);
    for (std::size_t g = 0; g < groups.size(); ++g)
      static_cast<typename Kind::Options&>(groups[g].options()) = options[g];
  });
}

}  // namespace accrue
