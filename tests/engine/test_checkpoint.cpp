// SPDX-License-Identifier: Apache-2.0
// The folder protocol: what is committed can be read, what is damaged is refused and named, what fails leaves the rest
// as it was, and what must be kept is kept.
#include <sys/resource.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <QtTest>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/comm/rendezvous.h"

using namespace accrue;

namespace {

/// For QVERIFY2, which evaluates its message in any case.
template <typename T>
std::string why(const Result<T>& result) {
  return result ? "" : result.error().text();
}

namespace fs = std::filesystem;

CheckpointContent content_at(std::int64_t update) {
  CheckpointContent content;
  content.cursor = {.micro_step = update * 4,
                    .update = update,
                    .schedule_position = update - 1,
                    .optimizer_steps = update - 1,
                    .samples = update * 32,
                    .tokens = update * 4096,
                    .seconds = 0.1 + static_cast<double>(update) / 3.0,
                    .loss = 2.5};
  content.replicated = {{"parameters.w", at::full({3, 5}, static_cast<double>(update), at::kFloat)},
                        {"optimizer.exp_avg.w", at::arange(15, at::kFloat).view({3, 5})}};
  content.local = {{"local.rng.cpu", at::full({64}, 7, at::kByte)}};
  return content;
}

CheckpointIdentity identity() {
  return {.spec_sha256 = "s",
          .data_fingerprint = "d",
          .world = 1,
          .threads_per_rank = 1,
          .torch_version = "2.11.0",
          .cpu_capability = "AVX2"};
}

/// A run folder with a communicator of one.
struct Folder {
  QTemporaryDir dir;
  std::unique_ptr<Communicator> axis = single_communicator();

  fs::path path() const { return dir.path().toStdString(); }
  fs::path checkpoints() const { return path() / "checkpoints"; }
  Result<CommittedCheckpoint> save(const CheckpointContent& content, std::int64_t keep = 100) {
    return save_checkpoint(path(), content, identity(), keep, *axis);
  }
  Result<LoadedCheckpoint> load(const std::string& name = "newest", CheckpointIdentity now = identity()) const {
    return load_checkpoint(path(), name, 0, now);
  }
  QStringList names() const {
    return QDir(dir.filePath("checkpoints")).entryList(QDir::Dirs | QDir::Hidden | QDir::NoDotAndDotDot, QDir::Name);
  }
};

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

class TestCheckpoint : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void brings_everything_back() {
    Folder folder;
    const auto saved = folder.save(content_at(7));
    QVERIFY2(saved, why(saved).c_str());
    QCOMPARE(saved->name, std::string("step-7"));
    QVERIFY(saved->bytes > 0);
    const auto loaded = folder.load();
    QVERIFY2(loaded, why(loaded).c_str());
    QCOMPARE(loaded->name, std::string("step-7"));
    const CheckpointContent expected = content_at(7);
    QVERIFY(loaded->content.cursor == expected.cursor);
    QCOMPARE(loaded->content.replicated.size(), expected.replicated.size());
    for (std::size_t i = 0; i < expected.replicated.size(); ++i) {
      QCOMPARE(loaded->content.replicated[i].first, expected.replicated[i].first);
      QVERIFY(at::equal(loaded->content.replicated[i].second, expected.replicated[i].second));
    }
    QCOMPARE(loaded->content.local.size(), std::size_t{1});
    QVERIFY(at::equal(loaded->content.local[0].second, expected.local[0].second));
    QVERIFY(loaded->refused.empty());
    QVERIFY(loaded->not_bit_exact.empty());
    QCOMPARE(folder.names(), QStringList{"step-7"});
  }

  void numbers_that_are_not_finite_survive() {
    Folder folder;
    CheckpointContent content = content_at(3);
    content.cursor.loss = std::nan("");
    content.cursor.finite = false;
    QVERIFY(folder.save(content).has_value());
    const auto loaded = folder.load();
    QVERIFY2(loaded, why(loaded).c_str());
    QVERIFY(std::isnan(loaded->content.cursor.loss));
    QVERIFY(!loaded->content.cursor.finite);
  }

  void an_empty_folder_has_none() {
    Folder folder;
    const auto loaded = folder.load();
    QVERIFY2(loaded, why(loaded).c_str());
    QVERIFY(loaded->name.empty());
  }

  void takes_the_newest_by_number_and_the_named_one() {
    Folder folder;
    for (const std::int64_t update : {9, 10, 100}) QVERIFY(folder.save(content_at(update)).has_value());
    QCOMPARE(folder.load()->name, std::string("step-100"));
    QCOMPARE(folder.load("step-10")->name, std::string("step-10"));
    QCOMPARE(folder.load("step-50")->name, std::string("step-10"));
    const auto wrong = folder.load("latest");
    QVERIFY(!wrong);
    QCOMPARE(wrong.error().code, ErrorCode::config);
  }

  void any_flipped_bit_is_refused_by_name() {
    Folder folder;
    QVERIFY(folder.save(content_at(1)).has_value());
    QVERIFY(folder.save(content_at(2)).has_value());
    std::mt19937 random(20260101);
    for (const char* name : {"shard-0.safetensors", "manifest.json"}) {
      const fs::path file = folder.checkpoints() / "step-2" / name;
      const std::string whole = bytes_of(file);
      for (int i = 0; i < 300; ++i) {
        std::string damaged = whole;
        const std::size_t at = random() % damaged.size();
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
        put_bytes(file, damaged);
        const auto loaded = folder.load();
        QVERIFY2(loaded, why(loaded).c_str());
        if (loaded->name == "step-2") {  // white space of the manifest may change; nothing that it says
          QCOMPARE(std::string(name), std::string("manifest.json"));
          QVERIFY(std::isspace(static_cast<unsigned char>(whole[at])) != 0);
          QVERIFY(loaded->content.cursor == content_at(2).cursor);
          continue;
        }
        QCOMPARE(loaded->name, std::string("step-1"));
        QCOMPARE(loaded->refused.size(), std::size_t{1});
        QVERIFY2(loaded->refused[0].find("step-2 was refused") != std::string::npos, loaded->refused[0].c_str());
        QVERIFY2(loaded->refused[0].find(name) != std::string::npos, loaded->refused[0].c_str());
      }
      put_bytes(file, whole);
    }
    QCOMPARE(folder.load()->name, std::string("step-2"));
  }

  void any_truncation_is_refused() {
    Folder folder;
    QVERIFY(folder.save(content_at(1)).has_value());
    QVERIFY(folder.save(content_at(2)).has_value());
    for (const char* name : {"shard-0.safetensors", "manifest.json"}) {
      const fs::path file = folder.checkpoints() / "step-2" / name;
      const std::string whole = bytes_of(file);
      for (std::size_t length = 0; length + 2 < whole.size(); length += 37) {
        put_bytes(file, whole.substr(0, length));
        QCOMPARE(folder.load()->name, std::string("step-1"));
      }
      fs::remove(file);
      QCOMPARE(folder.load()->name, std::string("step-1"));
      put_bytes(file, whole);
    }
  }

  void a_manifest_of_another_version_is_refused_with_both_numbers() {
    Folder folder;
    QVERIFY(folder.save(content_at(1)).has_value());
    const fs::path file = folder.checkpoints() / "step-1" / "manifest.json";
    std::string text = bytes_of(file);
    const std::string version = "\"version\": 1";
    text.replace(text.find(version), version.size(), "\"version\": 7");
    put_bytes(file, text);
    const auto loaded = folder.load();
    QVERIFY(loaded.has_value());
    QVERIFY(loaded->name.empty());
    QCOMPARE(loaded->refused.size(), std::size_t{1});
    QVERIFY(loaded->refused[0].find("version 7") != std::string::npos);
    QVERIFY(loaded->refused[0].find("version 1") != std::string::npos);
  }

  void a_renamed_folder_is_refused() {
    Folder folder;
    QVERIFY(folder.save(content_at(1)).has_value());
    fs::rename(folder.checkpoints() / "step-1", folder.checkpoints() / "step-5");
    QVERIFY(folder.load()->name.empty());
    QVERIFY(folder.load()->refused[0].find("it holds step-1") != std::string::npos);
  }

  void what_is_not_a_checkpoint_is_not_looked_at() {
    Folder folder;
    QVERIFY(folder.save(content_at(4)).has_value());
    for (const char* name : {".step-9.abc.part", ".trash-step-8.abc", "step-", "step-x", "step--1", "other"})
      fs::create_directories(folder.checkpoints() / name);
    const auto loaded = folder.load();
    QCOMPARE(loaded->name, std::string("step-4"));
    QVERIFY(loaded->refused.empty());
  }

  void keeps_the_newest_and_clears_what_was_left_lying() {
    Folder folder;
    fs::create_directories(folder.checkpoints() / ".step-1.dead.part");
    for (std::int64_t update = 1; update <= 5; ++update) QVERIFY(folder.save(content_at(update), 3).has_value());
    QCOMPARE(folder.names(), (QStringList{"step-3", "step-4", "step-5"}));
  }

  void never_keeps_fewer_than_two() {
    Folder folder;
    for (std::int64_t update = 1; update <= 4; ++update) QVERIFY(folder.save(content_at(update), 0).has_value());
    QCOMPARE(folder.names(), (QStringList{"step-3", "step-4"}));
  }

  void never_drops_the_last_finite_one() {
    Folder folder;
    QVERIFY(folder.save(content_at(1), 2).has_value());
    QVERIFY(folder.save(content_at(2), 2).has_value());
    for (std::int64_t update = 3; update <= 6; ++update) {
      CheckpointContent content = content_at(update);
      content.cursor.finite = false;
      QVERIFY(folder.save(content, 2).has_value());
    }
    QCOMPARE(folder.names(), (QStringList{"step-2", "step-5", "step-6"}));
  }

  void a_step_that_exists_is_set_aside_and_not_written_into() {
    Folder folder;
    QVERIFY(folder.save(content_at(1)).has_value());
    QVERIFY(folder.save(content_at(2)).has_value());
    put_bytes(folder.checkpoints() / "step-2" / "shard-0.safetensors", "damaged");
    const auto again = folder.save(content_at(2));
    QVERIFY2(again, why(again).c_str());
    QCOMPARE(folder.load()->name, std::string("step-2"));
    QCOMPARE(folder.names(), (QStringList{"step-1", "step-2"}));
  }

  void a_disk_that_is_full_leaves_what_was_there() {
    Folder folder;
    QVERIFY(folder.save(content_at(1)).has_value());
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    QCOMPARE(::getrlimit(RLIMIT_FSIZE, &before), 0);
    for (const rlim_t limit : {1, 100, 400}) {  // within the shard's header, its data
      rlimit small = before;
      small.rlim_cur = limit;
      QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);
      const auto saved = folder.save(content_at(2));
      QCOMPARE(::setrlimit(RLIMIT_FSIZE, &before), 0);
      QVERIFY(!saved);
      QCOMPARE(saved.error().code, ErrorCode::disk);
      QVERIFY2(saved.error().message.find("missing") != std::string::npos, why(saved).c_str());
      QCOMPARE(folder.names(), QStringList{"step-1"});
      QCOMPARE(folder.load()->name, std::string("step-1"));
    }
    QVERIFY(folder.save(content_at(2)).has_value());
    QCOMPARE(folder.load()->name, std::string("step-2"));
  }

  void a_folder_that_cannot_be_made_is_an_error() {
    Folder folder;
    put_bytes(folder.path() / "checkpoints", "a file in the way");
    const auto saved = folder.save(content_at(1));
    QVERIFY(!saved);
    QCOMPARE(saved.error().code, ErrorCode::disk);
    QVERIFY(saved.error().where.find("checkpoints") != std::string::npos);
  }

  void data_that_changed_is_an_error_and_not_a_refusal() {
    Folder folder;
    QVERIFY(folder.save(content_at(1)).has_value());
    CheckpointIdentity now = identity();
    now.data_fingerprint = "e";
    const auto loaded = folder.load("newest", now);
    QVERIFY(!loaded);
    QCOMPARE(loaded.error().code, ErrorCode::data);
  }

  void differences_that_cost_bits_are_named() {
    Folder folder;
    QVERIFY(folder.save(content_at(1)).has_value());
    CheckpointIdentity now = identity();
    now.threads_per_rank = 2;
    now.cpu_capability = "AVX512";
    now.spec_sha256 = "t";
    const auto loaded = folder.load("newest", now);
    QVERIFY2(loaded, why(loaded).c_str());
    QCOMPARE(loaded->not_bit_exact.size(), std::size_t{3});
    QVERIFY(loaded->not_bit_exact[0].find("threads") != std::string::npos);
    QVERIFY(loaded->not_bit_exact[1].find("AVX512") != std::string::npos);
    QVERIFY(loaded->not_bit_exact[2].find("spec") != std::string::npos);
  }
};

QTEST_GUILESS_MAIN(TestCheckpoint)
#include "test_checkpoint.moc"
