// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/megatron/accelerate_config.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "accrue/run/base/counted.h"
#include "accrue/run/megatron/megatron_fields.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "megatron_values.h"
#include "spec_text.h"

namespace accrue {

namespace {

using Integer = std::int64_t;
using namespace std::string_literals;
using namespace std::string_view_literals;
using megatron_detail::parse_value;

constexpr std::string_view megatron_block = "megatron_lm_config.";
constexpr std::string_view megatron_prefix = "megatron_lm_";
constexpr std::string_view deepspeed_block = "deepspeed_config.";
constexpr std::string_view deepspeed_file_key = "deepspeed_config.deepspeed_config_file";
constexpr std::string_view parallelism_block = "parallelism_config.";
constexpr std::string_view parallelism_prefix = "parallelism_config_";

/// Top-level keys, including those of earlier versions (fp16, dynamo_backend).
constexpr std::array accelerate_keys{"command_file"sv,
                                     "commands"sv,
                                     "compute_environment"sv,
                                     "debug"sv,
                                     "deepspeed_config"sv,
                                     "deepspeed_hostfile"sv,
                                     "distributed_type"sv,
                                     "downcast_bf16"sv,
                                     "dynamo_backend"sv,
                                     "dynamo_config"sv,
                                     "enable_cpu_affinity"sv,
                                     "fp16"sv,
                                     "fp8_config"sv,
                                     "fsdp_config"sv,
                                     "gpu_ids"sv,
                                     "gradient_accumulation_steps"sv,
                                     "ipex_config"sv,
                                     "machine_rank"sv,
                                     "main_process_ip"sv,
                                     "main_process_port"sv,
                                     "main_training_function"sv,
                                     "megatron_lm_config"sv,
                                     "mixed_precision"sv,
                                     "mpirun_config"sv,
                                     "num_machines"sv,
                                     "num_processes"sv,
                                     "parallelism_config"sv,
                                     "rdzv_backend"sv,
                                     "same_network"sv,
                                     "tpu_env"sv,
                                     "tpu_name"sv,
                                     "tpu_use_cluster"sv,
                                     "tpu_use_sudo"sv,
                                     "tpu_vm"sv,
                                     "tpu_zone"sv,
                                     "use_cpu"sv};

std::string_view block_of(std::string_view key) {
  return key.substr(0, key.find('.'));
}

const char* half_name(Dtype dtype) {
  return dtype == Dtype::float16 ? "float16" : "bfloat16";
}

bool is_null(const ConfigEntry& entry) {
  const std::string word = spec_detail::folded(entry.value);
  return !entry.nested && !entry.quoted && (word.empty() || word == "null" || word == "~");
}

class Import {
 public:
  Import(const std::vector<ConfigEntry>& entries, const std::optional<DeepSpeedFile>& deepspeed)
      : entries_(entries), deepspeed_(deepspeed) {}

  AccelerateImport run() {
    for (const ConfigEntry& entry : entries_) by_key_.emplace(entry.key, &entry);
    for (const ConfigEntry& entry : entries_) take(entry);
    if (deepspeed_ && deepspeed_->problem.empty() && is_deepspeed()) take_deepspeed_file();
    share_processes();
    check_batch();
    // The plug-in's defaults apply even if the file sets none of its fields.
    if (has_megatron_ && !has_megatron(result_.spec)) result_.spec.megatron.tp_degree = 1;
    result_.spec.accumulation.dialect = has_megatron_ ? Dialect::accrue : Dialect::accelerate;
    if (!has_megatron_ && !steps_given_) result_.spec.accumulation.steps = 1;
    if (!has_megatron_ && !steps_answered_)
      result_.notes.push_back({.key = "gradient_accumulation_steps",
                               .use = ConfigUse::not_taken,
                               .why = "it stands in the program and not in this file; accumulation.steps is 1"});
    result_.notes.push_back({.key = "[model] and [data]",
                             .use = ConfigUse::not_taken,
                             .why = "they stand in the program and not in this file; add them to the spec"});
    std::ranges::stable_sort(result_.notes, {}, [](const ConfigNote& note) {
      const bool of_none = note.file.empty() && note.line == 0;
      return std::tuple(of_none, !note.file.empty(), note.line);
    });
    return std::move(result_);
  }

 private:
  void note(const ConfigEntry& entry, ConfigUse use, std::string why) {
    result_.notes.push_back({entry.key, entry.value, use, std::move(why), entry.line, file_});
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
    if (key == deepspeed_file_key) return take_deepspeed_name(entry);
    if (key.starts_with(deepspeed_block)) return take_deepspeed(entry, key.substr(deepspeed_block.size()));
    if (key.starts_with(parallelism_block)) return take_parallelism(entry, key.substr(parallelism_block.size()));
    if (key == "num_processes") return;  // handled once the other degrees are known
    if (key == "distributed_type") return take_type(entry);
    if (key == "mixed_precision") return take_precision(entry);
    if (key == "fp16") return take_fp16(entry);
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

  bool is_deepspeed() const { return word("distributed_type") == "deepspeed"; }
  /// One process, on a device unless use_cpu is set.
  bool is_single() const {
    const ConfigEntry* type = find("distributed_type");
    return type != nullptr && !type->nested && (word("distributed_type") == "no" || is_off(*type));
  }

  void take_type(const ConfigEntry& entry) {
    const std::string type = spec_detail::folded(entry.value);
    const auto device = [&] { return is_cpu() ? "the ranks compute on the CPU"s : "launch.device is \"cuda\""s; };
    if (is_single()) return set_device(entry, is_cpu() ? DeviceKind::cpu : DeviceKind::cuda);
    if (type == "multi_cpu") return set_device(entry, DeviceKind::cpu);
    if (type == "multi_gpu" || type == "deepspeed") return set_device(entry, DeviceKind::cuda);
    if (type == "megatron_lm") {
      has_megatron_ = true;
      return is_cpu() ? used(entry, "[megatron]") : set_device(entry, DeviceKind::cuda);
    }
    if (type == "fsdp") {
      if (!is_cpu()) result_.spec.launch.device = DeviceKind::cuda;
      return not_taken(entry, device() +
                                  ", and parameters are not sharded over replicas; parallel.zero = 1 shards the "
                                  "optimizer's state");
    }
    not_taken(entry, "launch.device is cpu or cuda; the ranks of this spec compute on the CPU");
  }

  void take_fp16(const ConfigEntry& entry) {
    if (find("mixed_precision") != nullptr) return idle(entry, "mixed_precision is given");
    if (is_off(entry)) return idle(entry, "it is switched off");
    result_.spec.model.dtype = Dtype::float16;
    used(entry, "model.dtype = \"float16\"");
  }

  void take_precision(const ConfigEntry& entry) {
    const std::string kind = spec_detail::folded(entry.value);
    if (kind == "no" || is_off(entry)) return idle(entry, "model.dtype is float32 in any case");
    if (kind != "fp16" && kind != "bf16")
      return not_taken(entry, "model.dtype has float32, float64, bfloat16 and float16");
    result_.spec.model.dtype = kind == "fp16" ? Dtype::float16 : Dtype::bfloat16;
    used(entry, "model.dtype = \""s + half_name(result_.spec.model.dtype) + "\"");
  }

  void take_steps(const ConfigEntry& entry) {
    const auto steps = whole(entry);
    if (is_auto(entry)) return leave_steps(entry, "the program sets it; accumulation.steps is 1");
    if (!steps || *steps < 1 || *steps > max_window_steps)
      return not_taken(entry, "accumulation.steps is a whole number from 1 to 1048576");
    if (has_megatron_ || word("distributed_type") == "megatron_lm") {
      if (*steps == 1) return idle(entry, "num_micro_batches accumulates under Megatron-LM");
      return not_taken(entry, "num_micro_batches accumulates under Megatron-LM, and this must be 1");
    }
    result_.spec.accumulation.steps = *steps;
    steps_given_ = steps_answered_ = true;
    used(entry, "accumulation.steps = " + entry.value);
  }
  /// Leaves the steps as they are; the entry's note says why.
  void leave_steps(const ConfigEntry& entry, std::string why) {
    steps_answered_ = true;
    not_taken(entry, std::move(why));
  }
  static bool is_auto(const ConfigEntry& entry) { return !entry.nested && spec_detail::folded(entry.value) == "auto"; }

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

  void take_deepspeed_name(const ConfigEntry& entry) {
    if (is_null(entry) || spec_detail::folded(entry.value) == "none") return idle(entry, "it is left out");
    if (!is_deepspeed()) return idle(entry, "distributed_type is not DEEPSPEED");
    if (!deepspeed_ || !deepspeed_->problem.empty())
      return leave_steps(entry, (deepspeed_ ? deepspeed_->problem : "it is not read"s) +
                                    "; what it holds, gradient_accumulation_steps too, is not in the spec");
    used(entry, deepspeed_->name);
  }

  void take_deepspeed(const ConfigEntry& entry, std::string_view name) {
    if (!is_deepspeed()) return idle(entry, "distributed_type is not DEEPSPEED");
    constexpr std::array of_the_file{"gradient_accumulation_steps"sv, "gradient_clipping"sv, "zero_stage"sv};
    if (deepspeed_ && std::ranges::find(of_the_file, name) != of_the_file.end())
      return not_taken(entry, "deepspeed_config_file holds it; Accelerate refuses both");
    if (name == "gradient_accumulation_steps") return take_steps(entry);
    if (name == "gradient_clipping") return take_clip(entry);
    if (name == "zero_stage") return take_zero(entry);
    refuse_deepspeed(entry);
  }

  void take_clip(const ConfigEntry& entry) {
    if (is_auto(entry)) return not_taken(entry, "the program sets it; set optimizer.clip_norm");
    const auto norm = entry.nested ? std::nullopt : parse_value(FieldType::real, entry.value);
    const SpecField& clip = *find_field("optimizer.clip_norm");
    if (!norm || spec_detail::check_value(clip, *norm))
      return not_taken(entry, "optimizer.clip_norm is a number from 0");
    clip.set(result_.spec, *norm);
    used(entry, "optimizer.clip_norm = " + format_value(*norm));
  }

  void take_zero(const ConfigEntry& entry) {
    const auto stage = whole(entry);
    if (stage == 0) return idle(entry, "parallel.zero is 0 in any case");
    if (stage != 1)
      return not_taken(entry, "parallel.zero has the stages 0 and 1: gradients and parameters are not sharded");
    result_.spec.parallel.zero = 1;
    used(entry, "parallel.zero = 1");
  }

  void refuse_deepspeed(const ConfigEntry& entry) {
    if (is_off(entry) || spec_detail::folded(entry.value) == "none") return idle(entry, "it is switched off");
    not_taken(entry, "DeepSpeed is not used; its stage 1 is parallel.zero");
  }

  /// Takes DeepSpeed's own file, which takes precedence over the configuration.
  void take_deepspeed_file() {
    file_ = deepspeed_->name;
    for (const ConfigEntry& entry : deepspeed_->entries) take_deepspeed_entry(entry);
    if (!steps_answered_) steps_given_ = steps_answered_ = true, result_.spec.accumulation.steps = 1;
    file_.clear();
  }

  void take_deepspeed_entry(const ConfigEntry& entry) {
    const std::string_view key = entry.key;
    const std::string_view block = block_of(key);
    if (key == "gradient_accumulation_steps") return take_steps(entry);
    if (key == "gradient_clipping") return take_clip(entry);
    if (key == "zero_optimization.stage") return take_zero(entry);
    if (key == "train_micro_batch_size_per_gpu") return take_micro_batch(entry);
    if (key == "train_batch_size") {
      if (is_auto(entry)) return idle(entry, "it follows from the micro-batch, the steps and the ranks");
      batch_ = &entry;  // once they are known
      return;
    }
    if (key == "bf16.enabled" || key == "fp16.enabled") return take_half(entry, block);
    if (block == "fp16" || block == "bf16")
      return result_.spec.model.dtype == Dtype::float16 && block == "fp16"
                 ? not_taken(entry, "the loss scale stands in [optimizer]: loss_scale and the keys beside it")
                 : idle(entry, std::string(block) + " is switched off");
    if (block == "optimizer") return not_taken(entry, "set it in [optimizer]");
    if (block == "scheduler") return not_taken(entry, "set it in [schedule]");
    if (key == "steps_per_print" || key == "wall_clock_breakdown") return idle(entry, "it prints only");
    refuse_deepspeed(entry);
  }

  void take_micro_batch(const ConfigEntry& entry) {
    if (is_auto(entry)) return not_taken(entry, "the program sets it; set accumulation.micro_batch");
    const auto samples = whole(entry);
    const SpecField& micro = *find_field("accumulation.micro_batch");
    if (!samples || spec_detail::check_value(micro, *samples))
      return not_taken(entry, "accumulation.micro_batch takes " + spec_detail::expected_text(micro));
    micro.set(result_.spec, *samples);
    used(entry, "accumulation.micro_batch = " + entry.value);
  }

  void take_half(const ConfigEntry& entry, std::string_view block) {
    if (is_auto(entry)) return idle(entry, "mixed_precision decides");
    if (is_off(entry)) return idle(entry, "it is switched off");
    const Dtype dtype = block == "fp16" ? Dtype::float16 : Dtype::bfloat16;
    Dtype& set = result_.spec.model.dtype;
    if (set != Dtype::float32 && set != dtype)
      return not_taken(entry, "model.dtype is "s + half_name(set) + " already");
    set = dtype;
    used(entry, "model.dtype = \""s + half_name(set) + "\"");
  }

  void take_parallelism(const ConfigEntry& entry, std::string_view name) {
    if (name.starts_with(parallelism_prefix)) name.remove_prefix(parallelism_prefix.size());
    if (is_null(entry)) return idle(entry, "it is left out");
    const Integer size = name.ends_with("_size") ? whole(entry).value_or(0) : 0;
    if (size == 1) return idle(entry, "there is no such division");
    if (name == "dp_replicate_size" || name == "dp_shard_size")
      return idle(entry, "num_processes gives the replicas: parallel.data");
    if (name == "tp_size" && !spec_detail::check_value(*find_field("parallel.tensor"), size)) {
      result_.spec.parallel.tensor = size;
      return used(entry, "parallel.tensor = " + entry.value);
    }
    if ((name == "cp_size" || name == "sp_size") && size > 1 && size <= 1024) {
      shared_positions_ *= size;
      return not_taken(entry, "ranks do not share the positions of a sample; parallel.data has as many fewer");
    }
    not_taken(entry, name.starts_with("cp_") || name.starts_with("sp_")
                         ? "ranks do not share the positions of a sample"
                         : "parallel.data and parallel.tensor are what a spec has of it");
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
        {"dynamo_backend", "models are not compiled"},
        {"parallelism_config", "it is empty"},
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
    const std::string_view near = spec_detail::nearest_of(accelerate_keys, name);
    not_taken(entry, "it is no key of Accelerate 1.15" + (near.empty() ? "" : "; near is " + std::string(near)));
  }

  /// Data-parallel ranks are the processes divided by the other degrees.
  void share_processes() {
    const ConfigEntry* entry = find("num_processes");
    if (entry == nullptr) return;
    const auto processes = whole(*entry);
    const MegatronSpec& megatron = result_.spec.megatron;
    const ParallelSpec& parallel = result_.spec.parallel;
    const Integer model = parallel.tensor * megatron.tp_degree.value_or(1) * megatron.pp_degree.value_or(1);
    const auto refuse = [&](const std::string& why) {
      not_taken(*entry, why + "; the spec has " + counted(model * parallel.data, "rank"));
    };
    if (!processes || *processes < 1) return refuse("the number of ranks must be known: parallel.data");
    if (is_single())
      return *processes == 1 ? used(*entry, "parallel.data = 1")
                             : refuse("with distributed_type NO Accelerate starts one process");
    const Integer apart = model * shared_positions_;
    if (*processes % apart != 0)
      return refuse("it is no multiple of " +
                    (has_megatron_ ? "tp_degree x pp_degree"s : "tp_size x cp_size x sp_size"s) + " = " +
                    std::to_string(apart));
    const Integer replicas = *processes / apart;
    const SpecField& data = *find_field("parallel.data");
    if (spec_detail::check_value(data, replicas)) return refuse("parallel.data has at most 1024 ranks");
    data.set(result_.spec, replicas);
    used(*entry, "parallel.data = " + std::to_string(replicas));
  }

  /// Checks DeepSpeed's size of an update, which is a product in a spec.
  void check_batch() {
    if (batch_ == nullptr) return;
    const AccumulationSpec& accumulation = result_.spec.accumulation;
    const Integer samples = accumulation.micro_batch * accumulation.steps * result_.spec.parallel.data;
    file_ = deepspeed_->name;
    if (whole(*batch_) == samples)
      idle(*batch_, "it follows from the micro-batch, the steps and the ranks");
    else
      not_taken(*batch_, "an update of the spec has " + counted(samples, "sample") +
                             ": accumulation.micro_batch x accumulation.steps x parallel.data");
    file_.clear();
  }

  const std::vector<ConfigEntry>& entries_;
  const std::optional<DeepSpeedFile>& deepspeed_;
  const ConfigEntry* batch_ = nullptr;
  std::string file_;  ///< of the current source; empty: the configuration
  std::map<std::string_view, const ConfigEntry*> by_key_;
  AccelerateImport result_;
  bool has_megatron_ = false;
  Integer shared_positions_ = 1;
  bool steps_given_ = false;
  bool steps_answered_ = false;
};

}  // namespace

std::string deepspeed_file_of(const std::vector<ConfigEntry>& entries) {
  const auto found = std::ranges::find(entries, deepspeed_file_key, &ConfigEntry::key);
  const bool named = found != entries.end() && !found->nested && !is_null(*found);
  return named && spec_detail::folded(found->value) != "none" ? found->value : std::string();
}

Result<AccelerateImport> import_accelerate(const std::vector<ConfigEntry>& entries,
                                           const std::optional<DeepSpeedFile>& deepspeed) {
  const auto is_known = [](const ConfigEntry& entry) {
    return std::ranges::find(accelerate_keys, block_of(entry.key)) != accelerate_keys.end();
  };
  if (std::ranges::none_of(entries, is_known))
    return fail(ErrorCode::config,
                "there is no key of Accelerate" +
                    (entries.empty() ? "" : "; the first is " + entries.front().key.substr(0, 60)),
                {}, "accelerate config writes such a file.");
  return Import(entries, deepspeed).run();
}

std::string import_report(const AccelerateImport& import, std::string_view file) {
  // A different number of ranks comes first; entries without effect are separate.
  std::string ranks, not_taken, idle;
  for (const ConfigNote& note : import.notes) {
    const bool divides = note.key == "num_processes" && note.use == ConfigUse::used && import.spec.parallel.data > 1;
    if (note.use == ConfigUse::used && !divides) continue;
    std::string line(note.file.empty() ? file : std::string_view(note.file));
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
