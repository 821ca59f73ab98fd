// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/accelerate_config.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "accrue/run/megatron_fields.h"
#include "accrue/run/megatron_lowering.h"
#include "megatron_values.h"
#include "spec_text.h"

namespace accrue {

namespace {

using Integer = std::int64_t;
using namespace std::string_view_literals;
using megatron_detail::parse_value;

constexpr std::string_view megatron_block = "megatron_lm_config.";
constexpr std::string_view megatron_prefix = "megatron_lm_";

bool is_null(const ConfigEntry& entry) {
  const std::string word = spec_detail::folded(entry.value);
  return !entry.nested && !entry.quoted && (word.empty() || word == "null" || word == "~");
}

class Import {
 public:
  explicit Import(const std::vector<ConfigEntry>& entries) : entries_(entries) {}

  AccelerateImport run() {
    for (const ConfigEntry& entry : entries_) by_key_.emplace(entry.key, &entry);
    for (const ConfigEntry& entry : entries_) take(entry);
    share_processes();
    // The plug-in's defaults hold even where the file sets none of its fields.
    if (has_megatron_ && !has_megatron(result_.spec)) result_.spec.megatron.tp_degree = 1;
    result_.spec.accumulation.dialect = has_megatron_ ? Dialect::accrue : Dialect::accelerate;
    if (!has_megatron_) {
      if (!steps_given_) result_.spec.accumulation.steps = 1;
      if (!steps_given_)
        result_.notes.push_back({.key = "gradient_accumulation_steps",
                                 .use = ConfigUse::not_taken,
                                 .why = "it stands in the program and not in this file; accumulation.steps is 1"});
    }
    result_.notes.push_back({.key = "[model] and [data]",
                             .use = ConfigUse::not_taken,
                             .why = "they stand in the program and not in this file; add them to the spec"});
    std::ranges::stable_sort(result_.notes, {},
                             [](const ConfigNote& note) { return note.line == 0 ? 1 << 30 : note.line; });
    return std::move(result_);
  }

 private:
  void note(const ConfigEntry& entry, ConfigUse use, std::string why) {
    result_.notes.push_back({entry.key, entry.value, use, std::move(why), entry.line});
  }
  void used(const ConfigEntry& entry, std::string keys) { note(entry, ConfigUse::used, std::move(keys)); }
  void idle(const ConfigEntry& entry, std::string why) { note(entry, ConfigUse::idle, std::move(why)); }
  void not_taken(const ConfigEntry& entry, std::string why) { note(entry, ConfigUse::not_taken, std::move(why)); }

  const ConfigEntry* find(std::string_view key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : found->second;
  }
  std::string word(std::string_view key) const {
    const ConfigEntry* entry = find(key);
    return entry == nullptr || is_null(*entry) ? std::string() : spec_detail::folded(entry->value);
  }
  std::optional<Integer> whole(const ConfigEntry& entry) const {
    const auto value = entry.nested ? std::nullopt : parse_value(FieldType::integer, entry.value);
    return value ? std::optional(std::get<Integer>(*value)) : std::nullopt;
  }
  bool is_off(const ConfigEntry& entry) const {
    return is_null(entry) || (!entry.nested && parse_value(FieldType::boolean, entry.value) == SpecValue(false));
  }
  static bool is_empty(const ConfigEntry& entry) { return !entry.nested && !entry.quoted && entry.value.empty(); }
  bool one_machine() const {
    const ConfigEntry* machines = find("num_machines");
    return machines == nullptr || whole(*machines).value_or(1) <= 1;
  }

  void take(const ConfigEntry& entry) {
    const std::string_view key = entry.key;
    if (key.starts_with(megatron_block)) return take_megatron(entry, key.substr(megatron_block.size()));
    if (key.starts_with("deepspeed_config.")) return take_deepspeed(entry, key.substr(17));
    if (key == "num_processes") return;  // once the other degrees are known
    if (key == "distributed_type") return take_type(entry);
    if (key == "mixed_precision") return take_precision(entry);
    if (key == "use_cpu" && is_off(entry)) return idle(entry, "distributed_type gives launch.device");
    if (key == "use_cpu") return set_device(entry, DeviceKind::cpu);
    if (key == "gradient_accumulation_steps") return take_steps(entry);
    if (const auto block = key.find('.'); block != std::string_view::npos)
      return refuse_block(entry, key.substr(0, block));
    take_plain(entry);
  }

  void set_device(const ConfigEntry& entry, DeviceKind device) {
    if (device == DeviceKind::cuda && is_cpu()) return idle(entry, "use_cpu keeps the ranks on the CPU");
    result_.spec.launch.device = device;
    used(entry, device == DeviceKind::cuda ? "launch.device = \"cuda\"" : "launch.device = \"cpu\"");
  }
  bool is_cpu() const {
    const ConfigEntry* entry = find("use_cpu");
    return entry != nullptr && !is_off(*entry);
  }

  void take_type(const ConfigEntry& entry) {
    const std::string type = spec_detail::folded(entry.value);
    if (type == "no" || type == "multi_cpu" || (is_off(entry) && !entry.nested))
      return set_device(entry, DeviceKind::cpu);
    if (type == "multi_gpu" || type == "deepspeed") return set_device(entry, DeviceKind::cuda);
    if (type == "megatron_lm") {
      has_megatron_ = true;
      return is_cpu() ? used(entry, "[megatron]") : set_device(entry, DeviceKind::cuda);
    }
    if (type == "fsdp")
      return not_taken(entry,
                       "parameters are not sharded over replicas; parallel.zero = 1 shards the optimizer's state");
    not_taken(entry, "there are no ranks of this kind; launch.device is cpu or cuda");
  }

  void take_precision(const ConfigEntry& entry) {
    const std::string kind = spec_detail::folded(entry.value);
    if (kind == "no" || is_off(entry)) return idle(entry, "model.dtype is float32 in any case");
    if (kind != "fp16" && kind != "bf16")
      return not_taken(entry, "model.dtype has float32, float64, bfloat16 and float16");
    result_.spec.model.dtype = kind == "fp16" ? Dtype::float16 : Dtype::bfloat16;
    used(entry, kind == "fp16" ? "model.dtype = \"float16\"" : "model.dtype = \"bfloat16\"");
  }

  void take_steps(const ConfigEntry& entry) {
    const auto steps = whole(entry);
    if (!steps || *steps < 1 || *steps > max_window_steps)
      return not_taken(entry, "accumulation.steps is a whole number from 1 to 1048576");
    if (has_megatron_ || word("distributed_type") == "megatron_lm") {
      if (*steps == 1) return idle(entry, "num_micro_batches accumulates under Megatron-LM");
      return not_taken(entry, "num_micro_batches accumulates under Megatron-LM, and this must be 1");
    }
    result_.spec.accumulation.steps = *steps;
    steps_given_ = true;
    used(entry, "accumulation.steps = " + entry.value);
  }

  void take_megatron(const ConfigEntry& entry, std::string_view name) {
    if (word("distributed_type") != "megatron_lm") return idle(entry, "distributed_type is not MEGATRON_LM");
    if (name.starts_with(megatron_prefix)) name.remove_prefix(megatron_prefix.size());
    const MegatronField* field = find_megatron_field(name);
    if (field == nullptr) {
      std::vector<std::string_view> names;
      for (const MegatronField& known : megatron_fields()) names.push_back(known.name);
      const std::string_view near = spec_detail::nearest_of(names, name);
      return not_taken(entry,
                       "it is no field of MegatronLMPlugin" + (near.empty() ? "" : "; near is " + std::string(near)));
    }
    if (is_null(entry)) return idle(entry, "it is left out");
    const SpecField& row = field->spec_field();
    const auto value = entry.nested ? std::nullopt : parse_value(row.type, entry.value);
    if (!value || spec_detail::check_value(row, *value))
      return not_taken(entry, std::string(field->key) + " takes " + spec_detail::expected_text(row));
    row.set(result_.spec, *value);
    used(entry, std::string(field->key) + " = " + format_value(*value));
  }

  void take_deepspeed(const ConfigEntry& entry, std::string_view name) {
    if (word("distributed_type") != "deepspeed") return idle(entry, "distributed_type is not DEEPSPEED");
    if (name == "gradient_accumulation_steps") return take_steps(entry);
    if (name == "gradient_clipping") {
      const auto norm = entry.nested ? std::nullopt : parse_value(FieldType::real, entry.value);
      const SpecField& clip = *find_field("optimizer.clip_norm");
      if (!norm || spec_detail::check_value(clip, *norm))
        return not_taken(entry, "optimizer.clip_norm is a number from 0");
      clip.set(result_.spec, *norm);
      return used(entry, "optimizer.clip_norm = " + format_value(*norm));
    }
    if (name == "zero_stage") {
      const auto stage = whole(entry);
      if (stage == 0) return idle(entry, "parallel.zero is 0 in any case");
      if (stage != 1)
        return not_taken(entry, "parallel.zero has the stages 0 and 1: gradients and parameters are not sharded");
      result_.spec.parallel.zero = 1;
      return used(entry, "parallel.zero = 1");
    }
    if (is_off(entry) || spec_detail::folded(entry.value) == "none") return idle(entry, "it is switched off");
    not_taken(entry, "DeepSpeed is not used; its stage 1 is parallel.zero");
  }

  void refuse_block(const ConfigEntry& entry, std::string_view block) {
    if (is_off(entry)) return idle(entry, "it is switched off");
    static const std::map<std::string_view, std::string_view> reasons{
        {"fsdp_config", "parameters are not sharded over replicas; parallel.zero = 1 shards the optimizer's state"},
        {"fp8_config", "no number type has 8 bits"},
        {"dynamo_config", "models are not compiled"},
        {"ipex_config", "the CPU kernels are Accrue's own"},
        {"mpirun_config", "mpirun starts accrue-rank itself: mpirun accrue-rank SPEC"}};
    const auto known = reasons.find(block);
    if (known == reasons.end()) return refuse_unknown(entry, block);
    not_taken(entry, std::string(known->second));
  }

  void take_plain(const ConfigEntry& entry) {
    const std::string& key = entry.key;
    const std::string value = spec_detail::folded(entry.value);
    static const std::set<std::string_view> hosts{"machine_rank", "main_process_ip", "main_process_port",
                                                  "rdzv_backend", "same_network",    "deepspeed_hostfile"};
    static const std::map<std::string_view, std::string_view> switches{
        {"debug", "collectives are checked in any case"},
        {"enable_cpu_affinity", "the launcher's own binding is kept"},
        {"downcast_bf16", "there are no TPUs"},
        {"tpu_use_cluster", "there are no TPUs"},
        {"tpu_use_sudo", "there are no TPUs"},
        {"tpu_name", "there are no TPUs"},
        {"tpu_zone", "there are no TPUs"},
        {"tpu_vm", "there are no TPUs"},
        {"tpu_env", "there are no TPUs"},
        {"command_file", "there are no TPUs"},
        {"commands", "there are no TPUs"},
        {"fsdp_config", "parameters are not sharded over replicas"},
        {"deepspeed_config", "DeepSpeed is not used"},
        {"megatron_lm_config", "it is empty"},
        {"fp8_config", "no number type has 8 bits"},
        {"dynamo_config", "models are not compiled"},
        {"ipex_config", "the CPU kernels are Accrue's own"},
        {"mpirun_config", "mpirun starts accrue-rank itself"}};
    if (key == "compute_environment")
      return value == "local_machine" ? idle(entry, "runs are always local")
                                      : not_taken(entry, "runs are started on this machine, not in a cloud");
    if (key == "num_machines")
      return one_machine() && whole(entry) ? idle(entry, "a spec has no hosts")
                                           : not_taken(entry,
                                                       "a spec has no hosts: start accrue-rank on each, by torchrun, "
                                                       "srun or accrue-run launch");
    if (hosts.contains(key))
      return one_machine() ? idle(entry, "there is one machine")
                           : not_taken(entry, "the launcher says where the ranks meet: MASTER_ADDR and MASTER_PORT");
    if (key == "gpu_ids")
      return value == "all" || is_null(entry) ? idle(entry, "each rank takes the device of its number")
                                              : not_taken(entry, "set CUDA_VISIBLE_DEVICES for the run");
    if (key == "main_training_function") return idle(entry, "a run has no Python");
    if (const auto known = switches.find(key); known != switches.end())
      return is_empty(entry) ? idle(entry, "it is empty")
             : is_off(entry) ? idle(entry, "it is switched off")
                             : not_taken(entry, std::string(known->second));
    refuse_unknown(entry, key);
  }

  void refuse_unknown(const ConfigEntry& entry, std::string_view name) {
    constexpr std::array names{"compute_environment"sv,
                               "debug"sv,
                               "deepspeed_config"sv,
                               "distributed_type"sv,
                               "downcast_bf16"sv,
                               "dynamo_config"sv,
                               "fp8_config"sv,
                               "fsdp_config"sv,
                               "gpu_ids"sv,
                               "ipex_config"sv,
                               "machine_rank"sv,
                               "main_process_ip"sv,
                               "main_process_port"sv,
                               "megatron_lm_config"sv,
                               "mixed_precision"sv,
                               "mpirun_config"sv,
                               "num_machines"sv,
                               "num_processes"sv,
                               "rdzv_backend"sv,
                               "same_network"sv,
                               "use_cpu"sv};
    const std::string_view near = spec_detail::nearest_of(names, name);
    not_taken(entry, "it is no key of Accelerate 1.9" + (near.empty() ? "" : "; near is " + std::string(near)));
  }

  /// Data-parallel ranks are what the other degrees leave of the processes.
  void share_processes() {
    const ConfigEntry* entry = find("num_processes");
    if (entry == nullptr) return;
    const auto processes = whole(*entry);
    const MegatronSpec& megatron = result_.spec.megatron;
    const Integer model = megatron.tp_degree.value_or(1) * megatron.pp_degree.value_or(1);
    const auto refuse = [&](const std::string& why) {
      const Integer ranks = model * result_.spec.parallel.data;
      not_taken(*entry, why + "; the spec has " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"));
    };
    if (!processes || *processes < 1) return refuse("the number of ranks must be known: parallel.data");
    if (*processes % model != 0) return refuse("it is no multiple of tp_degree x pp_degree = " + std::to_string(model));
    const Integer replicas = *processes / model;
    const SpecField& data = *find_field("parallel.data");
    if (spec_detail::check_value(data, replicas)) return refuse("parallel.data has at most 1024 ranks");
    data.set(result_.spec, replicas);
    used(*entry, "parallel.data = " + std::to_string(replicas));
  }

  const std::vector<ConfigEntry>& entries_;
  std::map<std::string_view, const ConfigEntry*> by_key_;
  AccelerateImport result_;
  bool has_megatron_ = false;
  bool steps_given_ = false;
};

}  // namespace

AccelerateImport import_accelerate(const std::vector<ConfigEntry>& entries) {
  return Import(entries).run();
}

std::string import_report(const AccelerateImport& import, std::string_view file) {
  // Another number of ranks comes first, and what changes nothing stands apart.
  std::string ranks, not_taken, idle;
  for (const ConfigNote& note : import.notes) {
    const bool divides = note.key == "num_processes" && note.use == ConfigUse::used && import.spec.parallel.data > 1;
    if (note.use == ConfigUse::used && !divides) continue;
    std::string line(file);
    if (note.line > 0) line += ":" + std::to_string(note.line);
    line += ": " + note.key;
    if (!note.value.empty()) line += " = " + note.value;
    const bool changes_nothing = note.use == ConfigUse::idle;
    line += (divides ? ": sets " : changes_nothing ? ": changes nothing: " : ": not taken: ") + note.why + "\n";
    (changes_nothing ? idle : note.key == "num_processes" ? ranks : not_taken) += line;
  }
  const std::string first = ranks + not_taken;
  return first + (first.empty() || idle.empty() ? "" : "\n") + idle;
}

}  // namespace accrue
