// SPDX-License-Identifier: Apache-2.0
// plan.json holds the inputs of a plan (the spec's text, the facts of the data, the choices for the host) and, for
// readers, its results. A rank derives the results again from the inputs. All inputs are checked first, since the file
// may be damaged or forged.
#include "accrue/run/preflight/run_order.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "accrue/run/base/number_text.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "json_seal.h"
#include "json_text.h"
#include "plan_derivation.h"
#include "plan_summary.h"
#include "posix_file.h"
#include "preflight_checks.h"
#include "run_id.h"
#include "spec_reader.h"

namespace accrue {

namespace {

constexpr int plan_format_version = 1;

Json classes_json(const DataFacts& data) {
  Json json = Json::array();
  for (const ClassCount& each : data.classes)
    json.push_back(
        {{"name", each.name}, {"label", each.label}, {"training", each.training}, {"validation", each.validation}});
  return json;
}

Json data_json(const DataFacts& data) {
  Json json = {{"samples", data.samples},
               {"validation_samples", data.validation_samples},
               {"tokens_per_sample", data.tokens_per_sample},
               {"sample_tokens", data.sample_tokens},
               {"bytes", data.bytes},
               {"fingerprint", data.fingerprint},
               {"inputs", data.inputs},
               {"outputs", data.outputs}};
  if (data.validation_shuffled) json["validation_shuffled"] = true;
  for (const FileMark& each : data.files)
    json["files"].push_back({{"state", each.state}, {"fingerprint", each.fingerprint}});
  if (!data.classes.empty()) json["classes"] = classes_json(data);
  return json;
}

/// Reads an integer; the parser would also convert 1e300 and 2^64 - 1.
std::int64_t whole(const Json& json) {
  const bool fits =
      json.is_number_integer() && !(json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX});
  if (!fits) throw std::domain_error(json_text(json) + " is not a whole number of 64 bits");
  return json.get<std::int64_t>();
}

std::vector<std::int64_t> wholes(const Json& json) {
  std::vector<std::int64_t> values;
  for (const Json& each : json) values.push_back(whole(each));
  return values;
}

DataFacts data_from(const Json& json) {
  DataFacts data;
  data.samples = whole(json.at("samples"));
  data.validation_samples = whole(json.at("validation_samples"));
  data.tokens_per_sample = whole(json.at("tokens_per_sample"));
  data.sample_tokens = wholes(json.at("sample_tokens"));
  data.bytes = whole(json.at("bytes"));
  json.at("fingerprint").get_to(data.fingerprint);
  data.inputs = whole(json.at("inputs"));
  data.outputs = whole(json.at("outputs"));
  data.validation_shuffled = json.value("validation_shuffled", false);
  for (const Json& each : json.value("files", Json::array()))
    data.files.push_back({each.at("state").get<std::string>(), each.at("fingerprint").get<std::string>()});
  for (const Json& each : json.value("classes", Json::array())) {
    ClassCount& read = data.classes.emplace_back();
    each.at("name").get_to(read.name);
    read.label = whole(each.at("label"));
    read.training = whole(each.at("training"));
    read.validation = whole(each.at("validation"));
  }
  return data;
}

Json steps_set_json(const std::vector<LengthChange>& changes) {
  Json json = Json::array();
  for (const LengthChange& change : changes) json.push_back({{"from", change.from}, {"steps", change.steps}});
  return json;
}

Json plugins_json(const std::vector<PluginRecord>& plugins) {
  Json json = Json::array();
  for (const PluginRecord& each : plugins)
    json.push_back({{"file", each.file}, {"name", each.name}, {"sha256", each.sha256}});
  return json;
}

tl::unexpected<Error> damaged(const std::string& what) {
  return fail(ErrorCode::protocol, "the plan is damaged: " + what, "plan.json",
              "Start the run again from its spec, or restore the run folder.");
}

tl::unexpected<Error> from_earlier_version(const Finding& finding) {
  const std::string what = finding.key + (finding.found.empty() ? "" : " = " + finding.found);
  return fail(ErrorCode::protocol,
              "an earlier version of Accrue wrote this run folder: " + what + " " + finding.message, "plan.json",
              "Resume the run with that version, or change spec.toml and start a new run from it.");
}

std::string out_of_range(const char* key, std::int64_t value) {
  return std::string(key) + " is " + std::to_string(value);
}

/// Returns which number outside the spec is out of range; empty if none is.
std::string range_problem(const PlanInputs& inputs) {
  constexpr std::int64_t most_samples = std::int64_t{1} << 48;
  constexpr std::int64_t most_tokens = std::int64_t{1} << 31;
  constexpr std::int64_t most_columns = std::int64_t{1} << 31;
  constexpr std::int64_t most_threads = 1 << 16;
  struct Range {
    const char* key;
    std::int64_t value, least, most;
  };
  const DataFacts& data = inputs.data;
  for (const Range& each :
       {Range{"data.samples", data.samples, 1, most_samples},
        Range{"data.validation_samples", data.validation_samples, 0, most_samples},
        Range{"data.tokens_per_sample", data.tokens_per_sample, 0, most_tokens},
        Range{"data.bytes", data.bytes, 0, max_json_integer}, Range{"data.inputs", data.inputs, 0, most_columns},
        Range{"data.outputs", data.outputs, 0, most_columns},
        Range{"threads_per_rank", inputs.threads_per_rank, 1, most_threads},
        Range{"memory_per_rank", inputs.memory_per_rank, 0, max_json_integer}})
    if (each.value < each.least || each.value > each.most) return out_of_range(each.key, each.value);
  for (const std::int64_t tokens : data.sample_tokens)
    if (tokens < 0 || tokens > most_tokens) return out_of_range("data.sample_tokens", tokens);
  return {};
}

/// Returns why the plan cannot be derived from its inputs; empty if it can.
std::string inputs_problem(const PlanInputs& inputs) {
  if (auto problem = range_problem(inputs); !problem.empty()) return problem;
  preflight_detail::Findings findings;
  preflight_detail::check_values(inputs.spec, findings);
  if (!has_errors(findings.all)) preflight_detail::check_accumulation(inputs.spec, findings);
  if (!has_errors(findings.all)) preflight_detail::check_length(inputs.spec, inputs.data, findings);
  for (const Finding& finding : findings.all)
    if (finding.severity == Severity::error) return finding.text();
  return {};
}

/// A manual N must be in the range of the command that sets it.
std::string steps_problem(const RunPlan& plan) {
  const SpecField& steps = *find_field("accumulation.steps");
  std::int64_t last = -1;
  for (const LengthChange& change : plan.window.steps_set) {
    if (change.from <= last || change.from > max_micro_steps_of_run)
      return out_of_range("an update of steps_set", change.from);
    if (static_cast<double>(change.steps) < steps.minimum || static_cast<double>(change.steps) > steps.maximum)
      return out_of_range("a number of steps of steps_set", change.steps);
    last = change.from;
  }
  const Dialect dialect = plan.spec.accumulation.dialect;
  if (last >= 0 && dialect != Dialect::accrue && dialect != Dialect::accelerate)
    return "steps_set changes N, which this dialect keeps for a whole run";
  return {};
}

/// Returns what is impossible in the order beside its plan.
std::string order_problem(const RunOrder& order) {
  if (!is_run_id(order.run_id)) return "run_id \"" + order.run_id + "\" is not a run's name";
  const bool resumes = !order.resume_from.empty() && order.resume_from != "newest";
  if (resumes && !checkpoint_mark(order.resume_from).valid())
    return "resume_from \"" + order.resume_from + "\" is not a checkpoint's name";
  if (order.origin_ns > max_json_integer || order.origin_ns < -max_json_integer)
    return out_of_range("origin_ns", order.origin_ns);
  if (!order.branched_from.empty() && !is_run_id(order.branched_from))
    return "branched_from \"" + order.branched_from + "\" is not a run's name";
  if (order.branched_at < -1 || order.branched_at > max_json_integer)
    return out_of_range("branched_at", order.branched_at);
  if (order.recounts_at < -1 || order.recounts_at > max_json_integer)
    return out_of_range("recounts_at", order.recounts_at);
  for (const std::int64_t seq : order.first_seq)
    if (seq < 0 || seq > max_json_integer) return out_of_range("first_seq", seq);
  return {};
}

Result<PlanInputs> inputs_from(const Json& json) {
  const auto spec_text = json.at("spec").get<std::string>();
  SpecReading reading = spec_detail::parse_spec_text(spec_text, "plan.json", std::numeric_limits<std::size_t>::max());
  for (const Finding& finding : reading.findings)
    if (finding.removed) return from_earlier_version(finding);
  if (!reading.ok()) return damaged(reading.findings.front().text());
  PlanInputs inputs;
  inputs.spec = std::move(reading.spec);
  inputs.base_dir = json.at("base_dir").get<std::string>();
  inputs.data = data_from(json.at("data"));
  inputs.weights_fingerprint = json.value("weights_fingerprint", std::string());
  const auto backend = from_name<BackendKind>(json.at("backend").get<std::string>());
  if (!backend || *backend == BackendKind::automatic) return damaged("no backend is chosen");
  inputs.backend = *backend;
  inputs.threads_per_rank = whole(json.at("threads_per_rank"));
  if (json.contains("memory_per_rank")) inputs.memory_per_rank = whole(json.at("memory_per_rank"));
  const bool ragged = inputs.data.tokens_per_sample == 0;
  if (ragged && static_cast<std::int64_t>(inputs.data.sample_tokens.size()) != inputs.data.samples)
    return damaged("sample_tokens does not have one entry a sample");
  if (auto problem = inputs_problem(inputs); !problem.empty()) return damaged(problem);
  return inputs;
}

Result<RunOrder> order_from(const Json& json) {
  const std::int64_t version = whole(json.at("v"));
  if (version != plan_format_version)
    return fail(ErrorCode::protocol,
                "the plan has format version " + std::to_string(version) + ", this program reads version " +
                    std::to_string(plan_format_version),
                "plan.json", "Use the Accrue that made it, or start the run again from its spec.");
  const auto inputs = inputs_from(json);
  if (!inputs) return tl::unexpected(inputs.error());
  RunOrder order;
  order.plan = derive_plan(*inputs);
  order.run_id = json.at("run_id").get<std::string>();
  order.run_dir = json.at("run_dir").get<std::string>();
  order.origin_ns = whole(json.at("origin_ns"));
  json.at("resume_from").get_to(order.resume_from);
  order.first_seq = wholes(json.at("first_seq"));
  json.at("interactive").get_to(order.interactive);
  order.paused = json.value("paused", false);
  order.branched_from = json.value("branched_from", std::string());
  order.changed_keys = json.value("changed_keys", std::vector<std::string>());
  if (json.contains("branched_at")) order.branched_at = whole(json.at("branched_at"));
  if (json.contains("recounts_at")) order.recounts_at = whole(json.at("recounts_at"));
  for (const Json& change : json.value("steps_set", Json::array()))
    order.plan.window.steps_set.push_back({whole(change.at("from")), whole(change.at("steps"))});
  for (const Json& each : json.value("plugins", Json::array()))
    order.plugins.push_back(
        {each.at("file").get<std::string>(), each.at("name").get<std::string>(), each.at("sha256").get<std::string>()});
  if (auto problem = order_problem(order); !problem.empty()) return damaged(problem);
  if (auto problem = steps_problem(order.plan); !problem.empty()) return damaged(problem);
  if (seal_of(json) == Seal::broken) return damaged("it was changed after it was written");
  if (!order.plan.window.steps_set.empty()) order.plan.totals = total_windows(order.plan.window);
  return order;
}

}  // namespace

bool is_run_id(std::string_view text) {
  constexpr std::size_t longest = 64;
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  return !text.empty() && text.size() <= longest && text.find_first_not_of(allowed) == std::string_view::npos;
}

std::string to_json(const RunOrder& order) {
  const RunPlan& plan = order.plan;
  Json json = {{"v", plan_format_version},
               {"run_id", order.run_id},
               {"run_dir", order.run_dir.string()},
               {"origin_ns", order.origin_ns},
               {"resume_from", order.resume_from},
               {"first_seq", order.first_seq},
               {"interactive", order.interactive},
               {"paused", order.paused},
               {"branched_from", order.branched_from},
               {"changed_keys", order.changed_keys},
               {"branched_at", order.branched_at},
               {"recounts_at", order.recounts_at},
               {"steps_set", steps_set_json(plan.window.steps_set)},
               {"plugins", plugins_json(order.plugins)},
               {"base_dir", plan.base_dir.string()},
               {"spec", write_spec(plan.spec)},
               {"data", data_json(plan.data)},
               {"backend", std::string(to_name(plan.backend))},
               {"threads_per_rank", plan.threads_per_rank},
               {"memory_per_rank", plan.memory_per_rank},
               {"derived", plan_summary(plan)}};
  if (!plan.weights_fingerprint.empty()) json["weights_fingerprint"] = plan.weights_fingerprint;
  return sealed_text(json);
}

Result<RunOrder> run_order_from_json(const std::string& json) {
  const Json parsed = parse_json(json);
  if (parsed.is_discarded())
    return damaged(json_depth(json) > max_json_depth ? "it is nested too deeply" : "it is not JSON");
  try {
    return order_from(parsed);
  } catch (const Json::exception& error) {
    return damaged(error.what());
  } catch (const std::domain_error& error) {
    return damaged(error.what());
  }
}

Result<RunOrder> read_run_order(const std::filesystem::path& plan_file) {
  const auto text = read_file(plan_file, max_plan_bytes);
  if (!text) return tl::unexpected(text.error());
  return run_order_from_json(*text);
}

Result<void> write_plan_file(const std::string& json, const std::filesystem::path& plan_file) {
  if (json.size() <= max_plan_bytes) return write_file(plan_file, json);
  return fail(ErrorCode::config,
              "the plan takes " + format_bytes(json.size()) + ", and at most " + format_bytes(max_plan_bytes) +
                  " can be read back",
              plan_file.string(), "Keep the data in a file instead of in the spec.");
}

std::string plan_summary_json(const RunPlan& plan) {
  return json_text(plan_summary(plan));
}

}  // namespace accrue
