// SPDX-License-Identifier: Apache-2.0
// plan.json holds what a plan follows from (the spec's text, the facts of the data, the choices taken for the host)
// and, for readers, what follows. A rank derives the rest again from the former; nothing is trusted twice.
#include <nlohmann/json.hpp>

#include "accrue/run/choice_names.h"
#include "accrue/run/spec_io.h"
#include "json_limits.h"
#include "plan_derivation.h"
#include "plan_summary.h"
#include "spec_reader.h"

namespace accrue {

namespace {

using Json = nlohmann::ordered_json;

constexpr int plan_format_version = 1;

Json data_json(const DataFacts& data) {
  return {{"samples", data.samples},
          {"validation_samples", data.validation_samples},
          {"tokens_per_sample", data.tokens_per_sample},
          {"sample_tokens", data.sample_tokens},
          {"bytes", data.bytes},
          {"fingerprint", data.fingerprint},
          {"inputs", data.inputs},
          {"outputs", data.outputs}};
}

DataFacts data_from(const Json& json) {
  DataFacts data;
  json.at("samples").get_to(data.samples);
  json.at("validation_samples").get_to(data.validation_samples);
  json.at("tokens_per_sample").get_to(data.tokens_per_sample);
  json.at("sample_tokens").get_to(data.sample_tokens);
  json.at("bytes").get_to(data.bytes);
  json.at("fingerprint").get_to(data.fingerprint);
  json.at("inputs").get_to(data.inputs);
  json.at("outputs").get_to(data.outputs);
  return data;
}

Json steps_set_json(const std::vector<LengthChange>& changes) {
  Json json = Json::array();
  for (const LengthChange& change : changes) json.push_back({{"from", change.from}, {"steps", change.steps}});
  return json;
}

tl::unexpected<Error> damaged(const std::string& what) {
  return fail(ErrorCode::protocol, "the plan is damaged: " + what, "plan.json",
              "Start the run again from its spec, or restore the run folder.");
}

Result<PlanInputs> inputs_from(const Json& json) {
  const auto spec_text = json.at("spec").get<std::string>();
  SpecReading reading = spec_detail::parse_spec_text(spec_text, "plan.json", std::numeric_limits<std::size_t>::max());
  if (!reading.ok()) return damaged(reading.findings.front().text());
  PlanInputs inputs;
  inputs.spec = std::move(reading.spec);
  inputs.base_dir = json.at("base_dir").get<std::string>();
  inputs.data = data_from(json.at("data"));
  const auto backend = from_name<BackendKind>(json.at("backend").get<std::string>());
  if (!backend || *backend == BackendKind::automatic) return damaged("no backend is chosen");
  inputs.backend = *backend;
  json.at("threads_per_rank").get_to(inputs.threads_per_rank);
  inputs.memory_per_rank = json.value("memory_per_rank", std::int64_t{0});
  const bool ragged = inputs.data.tokens_per_sample == 0;
  if (ragged && static_cast<std::int64_t>(inputs.data.sample_tokens.size()) != inputs.data.samples)
    return damaged("sample_tokens does not have one entry a sample");
  return inputs;
}

Result<RunOrder> order_from(const Json& json) {
  const auto version = json.at("v").get<std::int64_t>();
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
  json.at("origin_ns").get_to(order.origin_ns);
  json.at("resume_from").get_to(order.resume_from);
  json.at("first_seq").get_to(order.first_seq);
  json.at("interactive").get_to(order.interactive);
  for (const Json& change : json.value("steps_set", Json::array()))
    order.plan.window.steps_set.push_back(
        {change.at("from").get<std::int64_t>(), change.at("steps").get<std::int64_t>()});
  if (!order.plan.window.steps_set.empty()) order.plan.totals = total_windows(order.plan.window);
  return order;
}

}  // namespace

std::string to_json(const RunOrder& order) {
  const RunPlan& plan = order.plan;
  const Json json = {{"v", plan_format_version},
                     {"run_id", order.run_id},
                     {"run_dir", order.run_dir.string()},
                     {"origin_ns", order.origin_ns},
                     {"resume_from", order.resume_from},
                     {"first_seq", order.first_seq},
                     {"interactive", order.interactive},
                     {"steps_set", steps_set_json(plan.window.steps_set)},
                     {"base_dir", plan.base_dir.string()},
                     {"spec", write_spec(plan.spec)},
                     {"data", data_json(plan.data)},
                     {"backend", std::string(to_name(plan.backend))},
                     {"threads_per_rank", plan.threads_per_rank},
                     {"memory_per_rank", plan.memory_per_rank},
                     {"derived", plan_summary(plan)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunOrder> run_order_from_json(const std::string& json) {
  if (json_depth(json) > max_json_depth) return damaged("it is nested too deeply");
  try {
    return order_from(Json::parse(json));
  } catch (const Json::exception& error) {
    return damaged(error.what());
  }
}

std::string plan_summary_json(const RunPlan& plan) {
  return plan_summary(plan).dump();
}

}  // namespace accrue
