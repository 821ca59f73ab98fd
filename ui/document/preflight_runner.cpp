// SPDX-License-Identifier: GPL-3.0-or-later
#include "preflight_runner.h"

#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "accrue/run/facts/data_facts.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/weights/start_weights.h"
#include "library_probe.h"
#include "series/engine_bridge.h"
#include "spec_document.h"

namespace accrue::ui {

namespace {

/// Everything a data scan depends on.
struct ScanKey {
  DataSpec data;
  ModelKind model = ModelKind::gpt;
  std::optional<LossKind> loss;
  std::int64_t context = 0;
  std::optional<std::int64_t> decoder_context;
  std::int64_t vocabulary = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t seed = 0;
  std::filesystem::path base_dir;
  std::vector<std::pair<std::filesystem::file_time_type, std::uintmax_t>> files;
  // Inputs of the size of an index.
  RunSection run;
  EvaluateSpec evaluate;
  AccumulationSpec accumulation;
  std::int64_t replicas = 1;
  bool binary_head = true;
  bool operator==(const ScanKey&) const = default;
};

ScanKey makeKey(const RunSpec& spec, const std::filesystem::path& base_dir) {
  ScanKey key{.data = spec.data,
              .model = spec.model.kind,
              .loss = spec.model.loss,
              .context = spec.model.context,
              .decoder_context = spec.model.decoder_context,
              .vocabulary = spec.model.vocabulary,
              .inputs = spec.model.inputs,
              .outputs = spec.model.outputs,
              .seed = spec.run.seed,
              .base_dir = base_dir,
              .files = {},
              .run = {},
              .evaluate = {},
              .accumulation = {},
              .replicas = 1,
              .binary_head = true};
  const auto add = [&key](const std::filesystem::path& file) {
    std::error_code ignored;
    key.files.emplace_back(std::filesystem::last_write_time(file, ignored), std::filesystem::file_size(file, ignored));
  };
  if (spec.data.kind != DataKind::indexed) {
    if (!spec.data.path.empty()) add(data_path(spec.data, base_dir));
    if (!spec.data.validation_path.empty()) add(validation_data_path(spec.data, base_dir));
    return key;
  }
  for (const auto* names : {&spec.data.paths, &spec.data.validation_paths})
    for (const std::string& name : *names)
      for (const char* ending : {".idx", ".bin", ".json"}) add(base_dir / (name + ending));
  key.run = spec.run;
  key.evaluate = spec.evaluate;
  key.accumulation = spec.accumulation;
  key.replicas = spec.parallel.data;
  key.binary_head = spec.model.binary_head;
  return key;
}

/// Replaces data that cannot be read, so that everything else about the spec is still checked.
DataFacts standInFacts(const RunSpec& spec) {
  DataFacts facts;
  facts.samples = 1'000'000;
  facts.tokens_per_sample = is_transformer(spec.model.kind) ? synthetic_items(spec.model) : 1;
  facts.inputs = spec.model.inputs;
  facts.outputs = spec.model.outputs;
  return facts;
}

Finding dataFinding(const DataSpec& data, const Error& error) {
  Finding finding;
  finding.severity = Severity::error;
  finding.key = data.kind == DataKind::indexed ? "data.paths" : "data.path";
  if (find_field(error.where) != nullptr) finding.key = error.where;
  finding.message = error.message;
  finding.expected = error.hint;
  return finding;
}

}  // namespace

/// Used by the background thread only, one job at a time.
struct PreflightRunner::ScanCache {
  std::optional<ScanKey> key;
  Result<DataFacts> facts;

  const Result<DataFacts>& scan(const RunSpec& spec, const std::filesystem::path& base_dir) {
    ScanKey wanted = makeKey(spec, base_dir);
    if (!key || *key != wanted) {
      facts = scan_data(spec, base_dir);
      key = std::move(wanted);
    }
    return facts;
  }
};

PreflightRunner::PreflightRunner(SpecDocument* document, QObject* parent)
    : QObject(parent),
      document_(document),
      host_(local_facts()),
      cache_(std::make_shared<ScanCache>()),
      probe_(std::make_shared<LibraryProbe>(rankProgram({}))) {
  delay_.setSingleShot(true);
  delay_.setInterval(debounce);
  connect(&delay_, &QTimer::timeout, this, &PreflightRunner::start);
  connect(document_, &SpecDocument::changed, &delay_, qOverload<>(&QTimer::start));
}

bool PreflightRunner::isCurrent() const {
  return result_revision_ == document_->revision() && !delay_.isActive();
}

const LoweredMegatron& PreflightRunner::lowered() const {
  if (lowered_revision_ != document_->revision()) {
    lowered_ = lower_megatron(with_keys_of(document_->spec(), spec_), environment_of(host_), libraries_);
    lowered_revision_ = document_->revision();
  }
  return lowered_;
}

void PreflightRunner::refresh() {
  delay_.stop();
  start();
}

void PreflightRunner::setHostFacts(const HostFacts& facts) {
  host_ = facts;
  lowered_revision_.reset();
  refresh();
}

void PreflightRunner::setRankProgram(const std::string& program) {
  probe_ = std::make_shared<LibraryProbe>(program);
}

void PreflightRunner::chooseLibraries(std::vector<PluginRecord> libraries) {
  if (libraries == chosen_) return;
  chosen_ = std::move(libraries);
  result_revision_ = ~quint64{0};
  refresh();
  Q_EMIT librariesChosen();
}

void PreflightRunner::start() {
  const quint64 request = ++request_;
  const quint64 revision = document_->revision();
  auto work = [cache = cache_, probe = probe_, chosen = chosen_, host = host_, spec = document_->spec(),
               base_dir = document_->baseDir(), request, revision] {
    Answer answer{request, revision, {}, std::nullopt, std::nullopt, {}, {}};
    const SpecWithWeights start = with_weights(spec, base_dir);
    answer.spec = start.spec;
    if (namesLibraries(spec)) answer.libraries = probe->describe(chosen);
    const RunSpec effective = lower_megatron(start.spec, environment_of(host), answer.libraries).spec;
    const Result<DataFacts>& facts = cache->scan(effective, base_dir);
    if (facts) answer.data = *facts;
    answer.result = preflight(start.spec, host, facts ? *facts : standInFacts(effective), base_dir, answer.libraries);
    if (!facts) {
      answer.result.plan.reset();
      std::erase_if(answer.result.findings, [](const Finding& finding) { return finding.key.starts_with("data."); });
      answer.result.findings.insert(answer.result.findings.begin(), dataFinding(effective.data, facts.error()));
    }
    answer.result.findings.insert(answer.result.findings.begin(), start.findings.begin(), start.findings.end());
    if (has_errors(start.findings)) answer.result.plan.reset();
    if (answer.result.plan) answer.result.plan->weights_fingerprint = start.fingerprint;
    if (answer.result.plan) answer.sketch = sketchOf(*answer.result.plan);
    return answer;
  };
  jobs_.run(std::move(work), [this](Answer answer) { take(std::move(answer)); });
}

void PreflightRunner::take(Answer answer) {
  if (answer.request != request_) return;
  result_ = std::move(answer.result);
  data_ = std::move(answer.data);
  sketch_ = std::move(answer.sketch);
  if (libraries_ != answer.libraries || spec_ != answer.spec) lowered_revision_.reset();
  libraries_ = std::move(answer.libraries);
  spec_ = std::move(answer.spec);
  result_revision_ = answer.revision;
  Q_EMIT finished();
}

}  // namespace accrue::ui
