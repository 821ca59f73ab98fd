// SPDX-License-Identifier: Apache-2.0
// Runs as one file, out and in again; and what such a file may not do to the folder that it is imported into. The
// hostile archives are made here, by hand.
#include <sys/stat.h>
#include <zlib.h>

#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "accrue/run/base/sha256.h"
#include "accrue/run/export/bundle.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/host/engine_host.h"
#include "accrue/run/record/branch.h"
#include "accrue/run/record/compare.h"
#include "accrue/run/record/run_store.h"
#include "support/fuzz_inputs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_bundle {

using namespace accrue;
using namespace accrue::test;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Everything below a folder: names, and the contents of files.
std::map<std::string, std::string> tree_of(const fs::path& folder) {
  std::map<std::string, std::string> tree;
  if (!fs::exists(folder)) return tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    tree[fs::relative(entry.path(), folder).string()] = entry.is_regular_file() ? read(entry.path()) : "";
  return tree;
}

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) qFatal("zlib");
  std::string packed(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = uInt(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) qFatal("zlib");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string gunzip(const std::string& packed) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) qFatal("zlib");
  std::string bytes(std::size_t{8} << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = uInt(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = uInt(bytes.size());
  if (inflate(&stream, Z_FINISH) != Z_STREAM_END) qFatal("zlib");
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

struct Entry {
  std::string name;
  std::string contents;
  char type = '0';
  std::string link = {};
};

/// A tar archive as POSIX describes it.
std::string tar(const std::vector<Entry>& entries) {
  std::string archive;
  for (const Entry& entry : entries) {
    char header[512] = {};
    std::snprintf(header, 101, "%s", entry.name.substr(0, 100).c_str());
    if (entry.name.size() == 100) std::memcpy(header, entry.name.data(), 100);
    std::memcpy(header + 100, "0000644\0000001750\0000001750", 24);
    std::snprintf(header + 124, 12, "%011llo", static_cast<unsigned long long>(entry.contents.size()));
    std::memcpy(header + 136, "14500000000", 12);
    std::memset(header + 148, ' ', 8);
    header[156] = entry.type;
    std::snprintf(header + 157, 100, "%s", entry.link.c_str());
    std::memcpy(header + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (const char byte : header) sum += static_cast<unsigned char>(byte);
    std::snprintf(header + 148, 8, "%06o", sum);
    header[155] = ' ';
    archive.append(header, sizeof header).append(entry.contents);
    archive.append((512 - entry.contents.size() % 512) % 512, '\0');
  }
  return archive.append(1024, '\0');
}

std::string file_line(const std::string& path, const std::string& contents, std::size_t bytes) {
  return "{\"path\":\"" + path + "\",\"bytes\":" + std::to_string(bytes) + ",\"sha256\":\"" + sha256_hex(contents) +
         "\"}";
}
std::string file_line(const std::string& path, const std::string& contents) {
  return file_line(path, contents, contents.size());
}

std::string manifest_of(const std::vector<std::string>& ids, const std::vector<std::string>& lines) {
  std::string text = "{\"accrue_bundle\":1,\"runs\":[";
  for (const std::string& id : ids)
    text += (text.back() == '[' ? "" : ",") + ("{\"run_id\":\"" + id) + "\",\"name\":\"a\"}";
  text += "],\"files\":[";
  for (const std::string& line : lines) text += (text.back() == '[' ? "" : ",") + line;
  return text + "]}";
}

/// A run of three updates that has finished.
fs::path made_run(const fs::path& dir, const std::string& id, double loss = 1.0, const std::string& weights = {}) {
  RunSpec spec;
  spec.run.name = "Run " + id;
  const std::string toml = write_spec(spec);
  auto writer = RunWriter::create(dir, toml).value();
  std::int64_t seq = 0;
  const auto add = [&](EventBody body) {
    writer.append({.rank = supervisor_rank, .seq = seq++, .time_ns = seq * 1000, .body = std::move(body)}).value();
  };
  add(RunStarted{.run = id,
                 .spec_sha256 = sha256_hex(toml),
                 .plan_json = "{}",
                 .versions_json = "{}",
                 .host_json = "{}",
                 .started_at = "2026-11-23T06:00:00Z"});
  for (std::int64_t update = 1; update <= 3; ++update)
    add(Update{.update = update,
               .micro_step = update,
               .samples = 8 * update,
               .loss = loss / double(update),
               .lr = 0.1,
               .grad_norm = 1.0,
               .seconds = double(update)});
  add(RunFinished{.outcome = "finished", .updates = 3, .loss = loss / 3.0, .seconds = 3.0});
  RunSummary summary = read_run(dir).value();
  summary.state = "finished";
  writer.write_summary(summary).value();
  if (!weights.empty()) {
    fs::create_directories(dir / "final");
    write(dir / "final" / "model.safetensors", weights);
  }
  return dir;
}

/// The start of a file of weights: a header of two bytes, "{}".
const std::string weights = std::string("\x02\0\0\0\0\0\0\0{}", 10) + std::string(1000, 'w');

}  // namespace

class TestBundle : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;
  fs::path fresh() { return fs::path(temporary_.path().toStdString()) / ("place" + std::to_string(++count_)); }

  fs::path file_of(const std::string& bytes) {
    const fs::path file = fresh();
    write(file, bytes);
    return file;
  }

  /// Imports what must not be imported into a folder with one run in it; nothing there may differ afterwards.
  std::string refusal_of(const std::string& bytes) {
    const fs::path runs = fresh();
    made_run(runs / "mine", "mine");
    const auto before = tree_of(runs);
    const auto imported = import_bundle(file_of(bytes), runs);
    if (tree_of(runs) != before) return "the folder was changed";
    return imported ? "nothing was refused" : imported.error().text();
  }

  static std::string packed(const std::string& manifest, std::vector<Entry> entries) {
    entries.insert(entries.begin(), {"manifest.json", manifest});
    return gzip(tar(entries));
  }

  std::string good_bundle() {
    const fs::path file = fresh();
    const BundleRequest request{.runs = {made_run(fresh(), "a-run")}, .spec = "[run]\nname = \"x\"\n"};
    write_bundle(request, file).value();
    return read(file);
  }

 private Q_SLOTS:
  void runs_come_back_byte_for_byte() {
    const fs::path one = made_run(fresh(), "one");
    const fs::path two = made_run(fresh(), "two", 2.0, weights);
    fs::create_directories(two / "ranks");
    write(two / "ranks" / "0.log", "secret");
    const fs::path file = fresh();
    const BundleRequest request{.runs = {one, two}, .spec = "[run]\n", .notes = "{\"one\":{}}", .with_weights = true};
    double done = 0.0;
    const auto written = write_bundle(request, file, [&](double part) { return done = part, true; });
    QVERIFY2(written.has_value(), written ? "" : written.error().text().c_str());
    QCOMPARE(done, 1.0);
    QCOMPARE(written->runs, 2);
    QCOMPARE(written->weight_bytes, std::int64_t(weights.size()));
    QCOMPARE(written->file_bytes, std::int64_t(fs::file_size(file)));
    const fs::path runs = fresh();
    const auto imported = import_bundle(file, runs);
    QVERIFY2(imported.has_value(), imported ? "" : imported.error().text().c_str());
    QCOMPARE(imported->spec, request.spec);
    QVERIFY(!imported->ignores_layout);
    QCOMPARE(imported->notes, request.notes);
    QCOMPARE(imported->runs.size(), std::size_t{2});
    QCOMPARE(imported->runs[1].dir, runs / "two");
    QCOMPARE(imported->runs[1].name, "Run two");
    for (const char* name : {"spec.toml", "events.jsonl", "summary.json"}) {
      QCOMPARE(read(runs / "one" / name), read(one / name));
      QCOMPARE(read(runs / "two" / name), read(two / name));
    }
    QCOMPARE(read(runs / "two" / "final" / "model.safetensors"), weights);
    const auto run = read_run(runs / "two");
    QVERIFY(run.has_value());
    QVERIFY2(run->problems.empty(), run->problems.empty() ? "" : run->problems.front().c_str());
    QCOMPARE(run->state, "finished");
    QCOMPARE(read_course(runs / "two").value().updates.at(3).loss, 2.0 / 3.0);
    // The ranks' output is not bundled, and no other file is left.
    QCOMPARE(tree_of(runs).size(), std::size_t{12});  // two of them the marks of the import
  }

  /// As the studio wrote bundles before, with the layout of the window between the spec and the notes.
  void an_older_bundle_with_a_window_layout_is_read_without_it() {
    const std::string spec = "[run]\n", layout = "{\"accrue_layout\":1}", notes = "{\"a\":{}}";
    const std::string manifest = manifest_of(
        {}, {file_line("spec.accrue", spec), file_line("layout.json", layout), file_line("notes.json", notes)});
    const auto older = import_bundle(
        file_of(packed(manifest, {{"spec.accrue", spec}, {"layout.json", layout}, {"notes.json", notes}})), fresh());
    QVERIFY2(older.has_value(), older ? "" : older.error().text().c_str());
    QVERIFY(older->ignores_layout);
    QCOMPARE(older->spec, spec);
    QCOMPARE(older->notes, notes);
  }

  void any_archiver_opens_it() {
    const fs::path file = fresh();
    QVERIFY(write_bundle({.runs = {made_run(fresh(), "a")}}, file).has_value());
    QProcess archiver;
    archiver.start("tar", {"-tzf", QString::fromStdString(file.string())});
    QVERIFY(archiver.waitForFinished(60'000));
    QCOMPARE(archiver.exitCode(), 0);
    QCOMPARE(
        archiver.readAllStandardOutput().split('\n'),
        (QList<QByteArray>{"manifest.json", "runs/a/spec.toml", "runs/a/events.jsonl", "runs/a/summary.json", ""}));
  }

  void weights_are_carried_only_where_they_are_asked_for() {
    const fs::path run = made_run(fresh(), "a", 1.0, weights);
    const fs::path file = fresh();
    const auto without = write_bundle({.runs = {run}}, file);
    QCOMPARE(without.value().weight_bytes, 0);
    QCOMPARE(bundled_weight_bytes(run), std::int64_t(weights.size()));
    QCOMPARE(bundled_weight_bytes(made_run(fresh(), "b")), 0);
    QVERIFY(!write_bundle({.runs = {made_run(fresh(), "c")}, .with_weights = true}, file).has_value());
  }

  void a_run_that_is_there_is_not_written_over() {
    const fs::path file = fresh();
    QVERIFY(write_bundle({.runs = {made_run(fresh(), "a"), made_run(fresh(), "b")}}, file).has_value());
    const fs::path runs = fresh();
    made_run(runs / "under another name", "a");
    const auto before = tree_of(runs / "under another name");
    const auto imported = import_bundle(file, runs);
    QVERIFY2(imported.has_value(), imported ? "" : imported.error().text().c_str());
    QVERIFY(imported->runs[0].was_there);
    QCOMPARE(imported->runs[0].dir, runs / "under another name");
    QVERIFY(!imported->runs[1].was_there);
    QCOMPARE(tree_of(runs / "under another name"), before);
    QVERIFY(import_bundle(file, runs).value().runs[1].was_there);
    // The same id with another loss.
    const fs::path others = fresh();
    made_run(others / "x", "b", 7.0);
    const auto all = tree_of(others);
    const auto refused = import_bundle(file, others);
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().text().find("holds the run b with another record") != std::string::npos,
             refused.error().text().c_str());
    QCOMPARE(tree_of(others), all);  // run a neither
    // A folder of that name which is no run.
    const fs::path taken = fresh();
    fs::create_directories(taken / "b");
    write(taken / "b" / "letter.txt", "dear");
    const auto blocked = import_bundle(file, taken);
    QVERIFY(!blocked.has_value());
    QVERIFY2(blocked.error().text().find("is there already") != std::string::npos, blocked.error().text().c_str());
    QCOMPARE(tree_of(taken).size(), std::size_t{2});
  }

  /// Its checkpoints stayed at home: a resume would train it from its start, over its record.
  void an_imported_run_is_never_continued() {
    const fs::path file = fresh();
    QVERIFY(write_bundle({.runs = {made_run(fresh(), "a")}}, file).has_value());
    const fs::path runs = fresh();
    const fs::path run = import_bundle(file, runs).value().runs.at(0).dir;
    QVERIFY(read_run(run).value().imported);
    QVERIFY(!read_run(made_run(fresh(), "b")).value().imported);
    const auto before = tree_of(runs);
    EngineHost host{EngineHostOptions{}};
    const auto resumed = host.resume(run);
    QVERIFY(!resumed.has_value());
    QVERIFY2(resumed.error().message.starts_with("was imported"), resumed.error().text().c_str());
    const auto branched = read_branch_point(run);
    QVERIFY(!branched.has_value());
    QVERIFY2(branched.error().message.starts_with("was imported"), branched.error().text().c_str());
    QCOMPARE(tree_of(runs), before);
  }

  void of_several_copies_any_may_be_the_same() {
    const fs::path run = made_run(fresh(), "a");
    fs::remove(run / "summary.json");  // the copies have one, which was made from the rest
    const fs::path file = fresh();
    QVERIFY(write_bundle({.runs = {run}}, file).has_value());
    const fs::path runs = fresh();
    made_run(runs / "went on", "a", 7.0);
    made_run(runs / "same", "a");
    made_run(runs / "went on, too", "a", 8.0);
    const auto imported = import_bundle(file, runs);
    QVERIFY2(imported.has_value(), imported ? "" : imported.error().text().c_str());
    QVERIFY(imported->runs.at(0).was_there);
    QCOMPARE(imported->runs.at(0).dir, runs / "same");
    // A pipe in place of its events is not a record, and is not read.
    fs::remove(runs / "same" / "events.jsonl");
    QCOMPARE(::mkfifo((runs / "same" / "events.jsonl").c_str(), 0600), 0);
    QVERIFY(import_bundle(file, runs).error().message.find("another record") != std::string::npos);
  }

  void what_could_not_be_read_again_is_not_written() {
    const fs::path folder = fresh();
    fs::create_directories(folder);
    const auto refusal = [&](const BundleRequest& request) {
      const auto written = write_bundle(request, folder / "x");
      return written ? std::string("nothing was refused") : written.error().text();
    };
    const std::string clash = refusal({.runs = {made_run(fresh(), "a"), made_run(fresh(), "A")}});
    QVERIFY2(clash.find("cannot be imported again: holds the run A twice. Put fewer runs") != std::string::npos,
             clash.c_str());
    // Nothing but zeros: a thousandth of its size once it is compressed.
    const fs::path zeros = made_run(fresh(), "z", 1.0, weights);
    fs::resize_file(zeros / "final" / "model.safetensors", 80 << 20);
    const std::string trap = refusal({.runs = {zeros}, .with_weights = true});
    QVERIFY2(trap.find("cannot be imported again: says that it holds 80.0 MiB in a file of") != std::string::npos,
             trap.c_str());
    const std::string program = refusal({.runs = {made_run(fresh(), "p", 1.0,
                                                           "\x7f"
                                                           "ELF")},
                                         .with_weights = true});
    QVERIFY2(program.find("does not hold weights") != std::string::npos, program.c_str());
    QVERIFY(tree_of(folder).empty());
  }

  void others_may_read_a_bundle_as_far_as_the_umask_allows() {
    const fs::path file = fresh(), run = made_run(fresh(), "r");
    for (const auto& [mask, allowed] : {std::pair(022U, 0644U), std::pair(077U, 0600U)}) {
      const mode_t before = ::umask(mask);
      const bool written = write_bundle({.runs = {run}}, file).has_value();
      ::umask(before);
      QVERIFY(written);
      QCOMPARE(static_cast<unsigned>(fs::status(file).permissions()), allowed);
    }
  }

  void what_cannot_be_bundled_is_refused() {
    const fs::path file = fresh();
    QVERIFY(!write_bundle({}, file).has_value());
    QVERIFY(!write_bundle({.runs = {fresh()}}, file).has_value());
    const fs::path run = made_run(fresh(), "a");
    QVERIFY(write_bundle({.runs = {run, run}}, file).error().message.find("once more") != std::string::npos);
    QVERIFY(write_bundle({.runs = {made_run(fresh(), "../a")}}, file).error().message.find("id") != std::string::npos);
    const auto lock = RunLock::take(run);
    QVERIFY(write_bundle({.runs = {run}}, file).error().message.find("is being trained") != std::string::npos);
    QVERIFY(!fs::exists(file));
  }

  void given_up_leaves_nothing() {
    const fs::path folder = fresh();
    fs::create_directories(folder);
    const BundleRequest request{.runs = {made_run(fresh(), "a")}};
    const auto never = [](double) { return false; };
    QCOMPARE(write_bundle(request, folder / "x", never).error().code, ErrorCode::cancelled);
    QVERIFY(write_bundle(request, folder / "x").has_value());
    const fs::path runs = fresh();
    int asked = 0;
    const auto soon = [&](double) { return ++asked < 4; };
    QCOMPARE(import_bundle(folder / "x", runs, soon).error().code, ErrorCode::cancelled);
    QVERIFY(tree_of(runs).empty());
    QCOMPARE(tree_of(folder).size(), std::size_t{1});
  }

  void what_a_killed_import_left_is_removed_by_the_next() {
    const fs::path runs = fresh();
    fs::create_directories(runs / ".import-20260101-000000-aaaaaa.part" / "x");
    const fs::path file = fresh();
    QVERIFY(write_bundle({.runs = {made_run(fresh(), "a")}}, file).has_value());
    QVERIFY(import_bundle(file, runs).has_value());
    QVERIFY(!fs::exists(runs / ".import-20260101-000000-aaaaaa.part"));
  }

  void hostile_archives_are_refused_by_name_data() {
    const Rows<QByteArray, QString> rows;
    const auto row = [&](const char* name, const std::string& bytes, const char* words) {
      rows(name, QByteArray::fromStdString(bytes), QString::fromLatin1(words));
    };
    const fs::path made = made_run(fresh(), "r");
    const std::string toml = read(made / "spec.toml");
    const std::string events = read(made / "events.jsonl");
    const std::vector<std::string> lines = {file_line("runs/r/spec.toml", toml),
                                            file_line("runs/r/events.jsonl", events)};
    const std::string manifest = manifest_of({"r"}, lines);
    const Entry spec{"runs/r/spec.toml", toml};
    const Entry log{"runs/r/events.jsonl", events};
    const std::string good = packed(manifest, {spec, log});
    const fs::path check = fresh();
    QVERIFY(import_bundle(file_of(good), check).has_value());  // the rows differ from it in one thing

    row("nothing", "", "is empty");
    row("text", "hello", "is not a bundle");
    row("no tar", gzip(std::string(2048, 'x')), "is not a bundle");
    row("no manifest", gzip(tar({spec, log})), "does not begin with a manifest");
    row("manifest is no json", packed("{", {}), "is not a bundle");
    row("deep json", packed(std::string(100'000, '['), {}), "is not a bundle");
    row("newer", packed("{\"accrue_bundle\":2}", {}), "is a bundle of version 2");
    row("cut in the stream", good.substr(0, good.size() / 2), "cut short");
    row("cut at the end", good.substr(0, good.size() - 3), "cut short");
    row("archive without an end", gzip(tar({{"manifest.json", manifest}, spec, log}).substr(0, 2048)), "cut short");
    row("bytes behind the end", good + "x", "more bytes behind its end");
    row("bytes behind the archive", gzip(tar({{"manifest.json", manifest}, spec, log}) + "x"), "behind its last file");
    row("second stream", good + good, "more bytes behind its end");

    const auto named = [&](const std::string& path) {
      return packed(manifest_of({"r"}, {file_line(path, toml)}), {{path, toml}});
    };
    row("traversal", named("runs/r/../../evil"), "names \"runs/r/../../evil\"");
    row("traversal in the id", packed(manifest_of({".."}, {}), {}), "whose id cannot name a folder");
    row("hidden id", packed(manifest_of({".ssh"}, {}), {}), "whose id cannot name a folder");
    row("id with a slash", packed(manifest_of({"a/b"}, {}), {}), "whose id cannot name a folder");
    row("absolute", named("/etc/passwd"), "names \"/etc/passwd\"");
    row("other file", named("runs/r/run.lock"), "names \"runs/r/run.lock\"");
    row("other place", named("runs/r/final/../x.safetensors"), "which is no file of a bundle");
    row("a program for weights", named("runs/r/final/evil.so"), "which is no file of a bundle");
    row("long name", named("runs/r/final/" + std::string(4000, 'a') + ".safetensors"), "which is no file of a bundle");
    row("of another run", named("runs/q/spec.toml"), "of a run that it does not list");
    row("control characters", named("a\\u001b[2Jb"), "names \"a?[2Jb\"");
    row("twice in the manifest", packed(manifest_of({"r"}, {lines[0], lines[0]}), {spec, spec}), "twice");
    row("case clash", packed(manifest_of({"r", "R"}, lines), {spec, log}), "twice");
    row("twice in the archive", packed(manifest, {spec, spec, log}),
        "where its manifest names \"runs/r/events.jsonl\"");
    row("more than it names", packed(manifest, {spec, log, {"evil", "x"}}),
        "holds \"evil\", which its manifest does not name");
    row("less than it names", packed(manifest, {spec}), "ends before \"runs/r/events.jsonl\"");
    row("another order", packed(manifest, {log, spec}), "holds \"runs/r/events.jsonl\" where");
    row("a link", packed(manifest, {spec, {"runs/r/events.jsonl", "", '2', "/etc/passwd"}}), "which is a link");
    row("a hard link", packed(manifest, {spec, {"runs/r/events.jsonl", "", '1', "runs/r/spec.toml"}}),
        "which is a link");
    row("a device", packed(manifest, {{"runs/r/spec.toml", "", '3'}}), "which is a device");
    row("a folder", packed(manifest, {{"runs/r/", "", '5'}}), "which is a folder");
    row("a pipe", packed(manifest, {{"runs/r/spec.toml", "", '6'}}), "which is a pipe");
    row("an extension", packed(manifest, {{"x", "12 path=evil\n", 'x'}}), "of a kind that no bundle has");
    row("wrong hash", packed(manifest, {{"runs/r/spec.toml", std::string(toml.size(), '#')}, log}),
        "has not the SHA-256");
    row("wrong size", packed(manifest, {{"runs/r/spec.toml", toml + "\n"}, log}), "bytes where its manifest says");
    row("larger than it may be", packed(manifest_of({"r"}, {file_line("spec.accrue", "", std::size_t{2} << 20)}), {}),
        "has a size that no bundle holds");
    row("more events than are read",
        packed(manifest_of({"r"}, {file_line("runs/r/events.jsonl", "", (std::size_t{1} << 30) + 1)}), {}),
        "has a size that no bundle holds");
    row("negative size",
        packed(R"({"accrue_bundle":1,"runs":[],"files":[{"path":"spec.accrue","bytes":-1,"sha256":""}]})", {}),
        "has a size that no bundle holds");
    row("a bomb",
        packed(manifest_of({"r"}, {file_line("runs/r/final/model.safetensors", "", std::size_t{7} << 30)}), {}),
        "says that it holds 7.0 GiB in a file of");
    row("another run's record",
        packed(manifest_of({"q"}, {file_line("runs/q/events.jsonl", events)}), {{"runs/q/events.jsonl", events}}),
        "is not the record of that run");
    const std::string elf =
        "\x7f"
        "ELF\x02\x01\x01" +
        std::string(64, '\0');
    row("a library in place of weights",
        packed(manifest_of({"r"}, {file_line("runs/r/final/model.safetensors", elf)}),
               {{"runs/r/final/model.safetensors", elf}}),
        "does not hold weights");
  }
  void hostile_archives_are_refused_by_name() {
    const auto [bytes, words] = current_row<QByteArray, QString>();
    const QString refused = QString::fromStdString(refusal_of(bytes.toStdString()));
    QVERIFY2(refused.contains(words), qPrintable(refused));
  }

  /// A changed bundle is refused, or its manifest matches its contents.
  void damaged_bundles_change_nothing() {
    const std::string good = good_bundle();
    const std::string open = gunzip(good);
    std::mt19937 random(11);
    const fs::path runs = fresh();
    const fs::path file = fresh();
    int refused = 0;
    const int trials = fuzz_inputs / 10;  // each reads and writes files
    for (int trial = 0; trial < trials; ++trial) {
      std::string bytes = trial % 2 == 0 ? good : open;
      const std::size_t until = trial % 4 == 1 ? std::min<std::size_t>(bytes.size(), 2048) : bytes.size();
      for (int change = 1 + int(random() % 3); change > 0; --change) bytes[random() % until] = char(random());
      if (random() % 5 == 0) bytes.resize(random() % bytes.size());
      if (trial % 2 == 1) bytes = gzip(bytes);
      write(file, bytes);
      const auto imported = import_bundle(file, runs);
      refused += imported ? 0 : 1;
      if (imported) {
        QCOMPARE(imported->runs.size(), std::size_t{1});
        QVERIFY(read_run(imported->runs[0].dir).has_value());
        fs::remove_all(runs);
      } else {
        QVERIFY2(tree_of(runs).empty(), imported.error().text().c_str());
      }
    }
    QVERIFY2(refused > trials * 9 / 10, qPrintable(QString::number(refused)));
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestBundle)

}  // namespace test_bundle
#include "test_bundle.moc"
