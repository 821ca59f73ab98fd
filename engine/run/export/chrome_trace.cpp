// SPDX-License-Identifier: Apache-2.0
// Spans on one track must nest or be disjoint. Overlapping collectives do neither, so each goes to the first free track
// of its axis. The k-th operation of a name along an axis, within one micro-step, is the same collective on every rank
// of the group.
#include "accrue/run/export/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/record/run_store.h"
#include "chrome_trace_file.h"

namespace accrue {

namespace {

struct ComputeSpan {
  std::int64_t begin_ns = 0, end_ns = 0, micro_step = 0, chunk = 0;
  ComputeKind kind = ComputeKind::forward;
};

struct CommunicationSpan {
  std::int64_t begin_ns = 0, end_ns = 0, micro_step = 0, update = 0, bytes = 0;
  std::int32_t axis = 0;  ///< index into RunSpans::names
  std::int32_t op = 0;
  CollectivePurpose purpose = CollectivePurpose::unknown;
};

struct RankSpans {
  std::vector<ComputeSpan> computed;
  std::vector<CommunicationSpan> communicated;
};

class RunSpans {
 public:
  std::map<std::int64_t, RankSpans> ranks;
  std::vector<std::string> names;

  void take(const RunEvent& event) {
    if (const auto* started = std::get_if<RunStarted>(&event.body)) rewind(*started);
    if (const auto* update = std::get_if<Update>(&event.body)) boundaries_[update->update] = update->micro_step;
    if (const auto* operations = std::get_if<Operations>(&event.body)) take(event.rank, *operations);
    if (const auto* sync = std::get_if<Sync>(&event.body)) take(event.rank, *sync);
  }

 private:
  void take(std::int64_t rank, const Operations& body) {
    auto& spans = ranks[rank].computed;
    for (std::size_t i = 0; i < body.kind.size(); ++i)
      spans.push_back({body.begin_ns[i], body.end_ns[i], body.micro_step[i], body.chunk[i], body.kind[i]});
  }

  void take(std::int64_t rank, const Sync& body) {
    auto& spans = ranks[rank].communicated;
    for (std::size_t i = 0; i < body.op.size(); ++i)
      spans.push_back({body.begin_ns[i], body.end_ns[i], body.micro_step[i], body.update[i], body.bytes[i],
                       index_of(body.axis[i]), index_of(body.op[i]), body.purpose[i]});
  }

  /// Drops everything after the checkpoint, which is trained and reported again.
  void rewind(const RunStarted& started) {
    if (!started.resumed) return;
    const auto boundary = boundaries_.find(started.resumed_update);
    const std::int64_t last = (boundary == boundaries_.end() ? 0 : boundary->second) + started.resumed_position;
    for (auto& [rank, spans] : ranks) {
      std::erase_if(spans.computed, [last](const ComputeSpan& span) { return span.micro_step > last; });
      std::erase_if(spans.communicated, [last](const CommunicationSpan& span) { return span.micro_step > last; });
    }
  }

  std::int32_t index_of(const std::string& name) {
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return static_cast<std::int32_t>(found - names.begin());
    names.push_back(name);
    return static_cast<std::int32_t>(names.size() - 1);
  }

  std::map<std::int64_t, std::int64_t> boundaries_;  ///< micro-step by update
};

Result<RunSpans> read_spans(const std::filesystem::path& events, const ExportProgress& progress) {
  auto file = EventFile::open(events);
  if (!file) return tl::unexpected(file.error());
  std::error_code unknown;
  const auto size = static_cast<double>(std::filesystem::file_size(events, unknown));
  constexpr std::size_t slice = 4 << 20;
  RunSpans spans;
  bool any = false;
  for (double done = 0.0; !file->at_end(); done += slice) {
    const std::vector<RunEvent> read = file->poll(slice);
    any = any || !read.empty();
    for (const RunEvent& event : read) spans.take(event);
    if (progress && !progress(size > 0.0 ? std::min(0.5 * done / size, 0.5) : 0.0))
      return fail(ErrorCode::cancelled, "the export was given up");
  }
  if (auto readable = check_readable(file->problems(), any, events); !readable) return tl::unexpected(readable.error());
  return spans;
}

/// Key of a collective: its axis, op, micro-step, index, and the lowest rank of its group.
using CollectiveKey = std::tuple<std::int32_t, std::int32_t, std::int64_t, std::int64_t, std::int64_t>;

struct FlowEnd {
  std::int64_t rank = 0, track = 0, begin_ns = 0;
};

bool is_message(const std::string& op) {
  return op.starts_with("send") || op.starts_with("receive");
}

std::optional<Axis> axis_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Axis::world); ++i)
    if (to_string(static_cast<Axis>(i)) == name) return static_cast<Axis>(i);
  return std::nullopt;
}

class TraceWriter {
 public:
  TraceWriter(TraceFile& file, RunSpans& spans, const RankGrid& grid) : file_(file), spans_(spans), grid_(grid) {}

  Result<TraceCounts> write(const std::string& run_name, const ExportProgress& progress) {
    file_.open_object(run_name);
    double done = 0.0;
    for (auto& [rank, spans] : spans_.ranks) {
      counts_.ranks += 1;
      name(rank, "process_name", 0, fmt::format("Rank {}", rank));
      file_.event(
          {{"ph", "M"}, {"name", "process_sort_index"}, {"pid", rank}, {"tid", 0}, {"args", {{"sort_index", rank}}}});
      write_computed(rank, spans.computed);
      write_communicated(rank, spans.communicated);
      done += 1.0;
      if (progress && !progress(0.5 + 0.5 * done / static_cast<double>(spans_.ranks.size())))
        return fail(ErrorCode::cancelled, "the export was given up");
      if (auto written = file_.state(); !written) return tl::unexpected(written.error());
    }
    write_flows();
    if (auto written = file_.close_object(); !written) return tl::unexpected(written.error());
    return counts_;
  }

 private:
  void name(std::int64_t rank, const char* what, std::int64_t track, const std::string& text) {
    file_.event({{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", track}, {"args", {{"name", text}}}});
  }

  void write_computed(std::int64_t rank, std::vector<ComputeSpan>& spans) {
    std::ranges::sort(spans, {}, &ComputeSpan::begin_ns);
    name(rank, "thread_name", 0, "computes");
    for (const ComputeSpan& span : spans) {
      file_.event({{"ph", "X"},
                   {"name", to_string(span.kind)},
                   {"cat", "compute"},
                   {"pid", rank},
                   {"tid", 0},
                   {"ts", microseconds(span.begin_ns)},
                   {"dur", microseconds(span.end_ns - span.begin_ns)},
                   {"args", {{"micro_step", span.micro_step}, {"chunk", span.chunk}}}});
      ++counts_.operations;
    }
  }

  /// Returns the track of an axis for a span; ends_ holds the end of the last span of each track.
  std::int64_t track_of(std::int64_t rank, std::int32_t axis, const CommunicationSpan& span) {
    auto& tracks = tracks_[{rank, axis}];
    auto free = std::ranges::find_if(tracks, [&](const auto& each) { return each.second <= span.begin_ns; });
    if (free == tracks.end()) {
      const std::int64_t track = ++last_track_[rank];
      const std::string& axis_name = spans_.names[static_cast<std::size_t>(axis)];
      name(rank, "thread_name", track,
           tracks.empty() ? axis_name : fmt::format("{}, {} at once", axis_name, tracks.size() + 1));
      free = tracks.insert(tracks.end(), {track, 0});
    }
    free->second = span.end_ns;
    return free->first;
  }

  void write_communicated(std::int64_t rank, std::vector<CommunicationSpan>& spans) {
    std::ranges::sort(spans, {}, &CommunicationSpan::begin_ns);
    std::map<CollectiveKey, std::int64_t> seen;
    for (const CommunicationSpan& span : spans) {
      const std::string& axis = spans_.names[static_cast<std::size_t>(span.axis)];
      const std::string& op = spans_.names[static_cast<std::size_t>(span.op)];
      const std::int64_t track = track_of(rank, span.axis, span);
      Json told = {{"axis", axis}, {"bytes", span.bytes}, {"update", span.update}, {"micro_step", span.micro_step}};
      if (span.purpose != CollectivePurpose::unknown) told["purpose"] = to_string(span.purpose);
      file_.event({{"ph", "X"},
                   {"name", op},
                   {"cat", axis},
                   {"pid", rank},
                   {"tid", track},
                   {"ts", microseconds(span.begin_ns)},
                   {"dur", microseconds(span.end_ns - span.begin_ns)},
                   {"args", std::move(told)}});
      ++counts_.collectives;
      const auto along = axis_named(axis);
      if (is_message(op) || !along || rank < 0 || rank >= grid_.world()) continue;
      const RankList group = grid_.group(*along, rank);
      if (group.size() < 2) continue;
      const std::int64_t which = seen[{span.axis, span.op, span.micro_step, 0, 0}]++;
      flows_[{span.axis, span.op, span.micro_step, which, group.front()}].push_back({rank, track, span.begin_ns});
    }
  }

  void write_flows() {
    for (auto& [key, ends] : flows_) {
      if (ends.size() < 2) continue;
      std::ranges::sort(ends, {}, [](const FlowEnd& end) { return std::tuple(end.begin_ns, end.rank); });
      ++counts_.flows;
      for (std::size_t i = 0; i < ends.size(); ++i) {
        Json event = {{"ph", i == 0                 ? "s"
                             : i + 1 == ends.size() ? "f"
                                                    : "t"},
                      {"name", spans_.names[static_cast<std::size_t>(std::get<1>(key))]},
                      {"cat", "collective"},
                      {"id", counts_.flows},
                      {"pid", ends[i].rank},
                      {"tid", ends[i].track},
                      {"ts", microseconds(ends[i].begin_ns)}};
        if (i + 1 == ends.size()) event["bp"] = "e";  // binds to the enclosing span
        file_.event(event);
      }
    }
  }

  static double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000.0; }

  TraceFile& file_;
  RunSpans& spans_;
  RankGrid grid_;
  TraceCounts counts_;
  std::map<std::pair<std::int64_t, std::int32_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> tracks_;
  std::map<std::int64_t, std::int64_t> last_track_;
  std::map<CollectiveKey, std::vector<FlowEnd>> flows_;
};

}  // namespace

Result<TraceCounts> write_chrome_trace(const std::filesystem::path& run_dir, const std::filesystem::path& file,
                                       const ExportProgress& progress) {
  const auto run = read_run(run_dir);
  if (!run) return tl::unexpected(run.error());
  auto spans = read_spans(run->dir / "events.jsonl", progress);
  if (!spans) return tl::unexpected(spans.error());
  if (spans->ranks.empty())
    return fail(ErrorCode::config, "the run recorded no span of a rank", run->dir.string(),
                "Imported runs and runs that ended before their first micro-step have none.");
  auto out = TraceFile::create(file);
  if (!out) return tl::unexpected(out.error());
  return TraceWriter(*out, *spans, make_grid(run->spec)).write(run->name, progress);
}

}  // namespace accrue
