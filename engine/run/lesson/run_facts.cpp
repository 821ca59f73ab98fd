// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/lesson/run_facts.h"

#include <algorithm>
#include <variant>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/record/run_store.h"
#include "json_text.h"

namespace accrue {

namespace {

/// A resumed run reports an update again: the later report replaces the earlier one and everything after it.
template <typename Reported>
void take_by_update(std::vector<Reported>& list, const Reported& reported) {
  std::erase_if(list, [&reported](const Reported& each) { return each.update >= reported.update; });
  list.push_back(reported);
}

std::string processor_of(const std::string& host_json) {
  const auto host = parse_json(host_json);
  if (!host.is_object()) return {};
  const auto name = host.find("cpu_name");
  return name != host.end() && name->is_string() ? name->get<std::string>() : std::string();
}

}  // namespace

void RunFacts::take(const RunEvent& event) {
  if (const auto* started = std::get_if<RunStarted>(&event.body)) {
    processor_name_ = processor_of(started->host_json);
  } else if (const auto* ready = std::get_if<RankReady>(&event.body)) {
    processor = processor_name_ + ", " + ready->instruction_set;
  } else if (const auto* update = std::get_if<Update>(&event.body)) {
    take_by_update(updates, *update);
  } else if (const auto* check = std::get_if<ExactnessCheck>(&event.body)) {
    take_by_update(checks, *check);
  } else if (const auto* sync = std::get_if<Sync>(&event.body); sync && event.rank == 0) {
    for (std::size_t i = 0; i < sync->op.size(); ++i) {
      if (!reduces_gradients(sync->purpose[i], sync->axis[i], sync->op[i])) continue;
      ++reductions;
      reduced_bytes += sync->bytes[i];
    }
  } else if (const auto* measured = std::get_if<Measured>(&event.body)) {
    activation_bytes = std::max(activation_bytes, measured->activation_bytes);
  } else if (const auto* finished = std::get_if<RunFinished>(&event.body)) {
    outcome = finished->outcome;
    weights_sha256 = finished->weights_sha256;
  }
}

Result<RunFacts> read_run_facts(const std::filesystem::path& run_dir) {
  const auto summary = read_run(run_dir);
  if (!summary) return tl::unexpected(summary.error());
  const auto history = read_events(run_dir / "events.jsonl");
  if (!history) return tl::unexpected(history.error());
  RunFacts facts(summary->spec);
  for (const RunEvent& event : history->events) facts.take(event);
  return facts;
}

}  // namespace accrue
