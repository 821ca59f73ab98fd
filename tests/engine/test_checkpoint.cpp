// SPDX-License-Identifier: Apache-2.0
// The folder protocol: what is committed can be read, what is damaged is refused and named, what fails leaves the rest
// as it was, and what must be kept is kept.
#include <sys/resource.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/comm/rendezvous.h"
#include "support/refusals.h"
#include "support/signed_checkpoint.h"
#include "support/table.h"
#include "support/test_program.h"
#include "support/window_positions.h"

namespace test_checkpoint {

using namespace accrue;
using namespace accrue::test;

namespace {

/// For QVERIFY2, which evaluates its message in any case.
template <typename T>
std::string why(const Result<T>& result) {
  return result ? "" : result.error().text();
}

namespace fs = std::filesystem;

CheckpointContent content_at(std::int64_t update) {
  CheckpointContent content;
  content.cursor = {.window = made_position({{"micro_step", update * 4},
                                             {"epoch", 1},
                                             {"batch", 2},
                                             {"updates", update},
                                             {"steps", 4},
                                             {"schedule_position", update - 1},
                                             {"at_boundary", 1}}),
                    .optimizer_steps = update - 1,
                    .samples = update * 32,
                    .tokens = update * 4096,
                    .seconds = 0.1 + static_cast<double>(update) / 3.0,
                    .loss = 2.5};
  content.tensors = {whole_tensor("parameters.w", at::full({3, 5}, static_cast<double>(update), at::kFloat)),
                     whole_tensor("optimizer.exp_avg.w", at::arange(15, at::kFloat).view({3, 5})),
                     whole_tensor("rank.0.rng.cpu", at::full({64}, 7, at::kByte))};
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
  Folder(std::initializer_list<std::int64_t> saved_updates = {}) {
    for (const std::int64_t update : saved_updates)
      if (const auto saved = save(content_at(update)); !saved) qFatal("%s", why(saved).c_str());
  }
  QTemporaryDir dir;
  std::unique_ptr<Communicator> axis = single_communicator();

  fs::path path() const { return dir.path().toStdString(); }
  fs::path checkpoints() const { return path() / "checkpoints"; }
  Result<CommittedCheckpoint> save(const CheckpointContent& content, std::int64_t keep = 100) {
    return save_checkpoint(path(), content, identity(), keep, *axis);
  }
  Result<OpenedCheckpoint> open(const std::string& name = "newest", const CheckpointIdentity& now = identity()) const {
    return open_checkpoint(
        path(), name, now, [](const CheckpointReader&) { return Result<void>(); }, *axis);
  }
  /// Returns the name of the newest usable checkpoint; empty if there is none.
  std::string newest() const {
    const auto opened = open();
    return opened && opened->checkpoint ? opened->checkpoint->name() : "";
  }
  /// The newest was refused, and said so with these words; the one before it is used.
  void refuses_newest(const std::string& words) const {
    const auto opened = open();
    QVERIFY2(opened, why(opened).c_str());
    QVERIFY2(opened->checkpoint.has_value(), words.c_str());
    QVERIFY2(opened->checkpoint->name() == "step-1", words.c_str());
    QCOMPARE(opened->refused.size(), std::size_t{1});
    QVERIFY2(opened->refused[0].find("step-2 was refused") != std::string::npos, opened->refused[0].c_str());
    QVERIFY2(opened->refused[0].find(words) != std::string::npos, (words + ": " + opened->refused[0]).c_str());
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
    const auto opened = folder.open();
    QVERIFY2(opened, why(opened).c_str());
    const CheckpointReader& checkpoint = *opened->checkpoint;
    QCOMPARE(checkpoint.name(), std::string("step-7"));
    const CheckpointContent expected = content_at(7);
    QVERIFY(checkpoint.cursor() == expected.cursor);
    QCOMPARE(checkpoint.tensor_names().size(), expected.tensors.size());
    for (const PlacedTensor& tensor : expected.tensors) {
      const auto read = checkpoint.read(tensor.name);
      QVERIFY2(read, why(read).c_str());
      QVERIFY(at::equal(*read, tensor.values));
    }
    QVERIFY(opened->refused.empty());
    QVERIFY(opened->not_bit_exact.empty());
    QCOMPARE(folder.names(), QStringList{"step-7"});
  }

  void a_read_of_what_is_not_there_is_an_error_by_name() {
    Folder folder{7};
    const auto opened = folder.open();
    const CheckpointReader& checkpoint = *opened->checkpoint;
    for (const PlacedTensor& wanted :
         {whole_tensor("parameters.v", at::zeros({3, 5})), whole_tensor("parameters.w", at::zeros({5, 3})),
          whole_tensor("parameters.w", at::zeros({3, 5}, at::kDouble))}) {
      const auto read = checkpoint.read(wanted);
      QVERIFY(!read);
      QVERIFY2(read.error().where.find(wanted.name) != std::string::npos, why(read).c_str());
      QVERIFY(wanted.values.eq(0).all().item<bool>());
    }
  }

  void numbers_that_are_not_finite_survive() {
    Folder folder;
    CheckpointContent content = content_at(3);
    content.cursor.loss = std::nan("");
    content.cursor.finite = false;
    QVERIFY(folder.save(content).has_value());
    const auto opened = folder.open();
    QVERIFY2(opened, why(opened).c_str());
    QVERIFY(std::isnan(opened->checkpoint->cursor().loss));
    QVERIFY(!opened->checkpoint->cursor().finite);
  }

  void an_empty_folder_has_none() {
    Folder folder;
    const auto opened = folder.open();
    QVERIFY2(opened, why(opened).c_str());
    QVERIFY(!opened->checkpoint);
    QVERIFY(opened->refused.empty());
  }

  void takes_the_newest_by_number_and_the_named_one() {
    Folder folder{9, 10, 100};
    QCOMPARE(folder.newest(), std::string("step-100"));
    QCOMPARE(folder.open("step-10")->checkpoint->name(), std::string("step-10"));
    QCOMPARE(folder.open("step-50")->checkpoint->name(), std::string("step-10"));
    const auto wrong = folder.open("latest");
    QVERIFY(!wrong);
    QCOMPARE(wrong.error().code, ErrorCode::config);
  }

  void any_flipped_bit_is_refused_by_name() {
    Folder folder{1, 2};
    std::mt19937 random(20260101);
    for (const char* name : {"shard-0.safetensors", "manifest.json"}) {
      const fs::path file = folder.checkpoints() / "step-2" / name;
      const std::string whole = bytes_of(file);
      for (int i = 0; i < 300; ++i) {
        std::string damaged = whole;
        const std::size_t at = random() % damaged.size();
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
        put_bytes(file, damaged);
        const auto opened = folder.open();
        QVERIFY2(opened, why(opened).c_str());
        if (opened->checkpoint->name() == "step-2") {  // white space of the manifest may change; nothing that it says
          QCOMPARE(std::string(name), std::string("manifest.json"));
          QVERIFY(std::isspace(static_cast<unsigned char>(whole[at])) != 0);
          QVERIFY(opened->checkpoint->cursor() == content_at(2).cursor);
          continue;
        }
        QCOMPARE(opened->checkpoint->name(), std::string("step-1"));
        QCOMPARE(opened->refused.size(), std::size_t{1});
        QVERIFY2(opened->refused[0].find("step-2 was refused") != std::string::npos, opened->refused[0].c_str());
        QVERIFY2(opened->refused[0].find(name) != std::string::npos, opened->refused[0].c_str());
      }
      put_bytes(file, whole);
    }
    QCOMPARE(folder.newest(), std::string("step-2"));
  }

  void any_truncation_is_refused() {
    Folder folder{1, 2};
    for (const char* name : {"shard-0.safetensors", "manifest.json"}) {
      const fs::path file = folder.checkpoints() / "step-2" / name;
      const std::string whole = bytes_of(file);
      for (std::size_t length = 0; length + 2 < whole.size(); length += 37) {
        put_bytes(file, whole.substr(0, length));
        QCOMPARE(folder.newest(), std::string("step-1"));
      }
      fs::remove(file);
      QCOMPARE(folder.newest(), std::string("step-1"));
      put_bytes(file, whole);
    }
  }

  void another_format_ends_the_search_and_says_what_to_do() {
    Folder folder{1, 2};
    for (const int version : {1, 2, 4, 7}) {
      resign_manifest(folder.checkpoints() / "step-2", [&](auto& json) { json["version"] = version; });
      const auto opened = folder.open();
      VERIFY_FAILS(opened, ErrorCode::config, "version " + std::to_string(version));
      QVERIFY(opened.error().message.find("reads \"accrue-checkpoint\" version 3") != std::string::npos);
      QVERIFY(opened.error().hint.find("the version of Accrue that began it") != std::string::npos);
    }
  }

  void a_manifest_nested_480000_deep_is_refused() {
    Folder folder{1, 2};
    constexpr int depth = 480'000;
    put_bytes(folder.checkpoints() / "step-2" / "manifest.json",
              signed_manifest("{\"schema\":\"accrue-checkpoint\",\"version\":3,\"deep\":" + std::string(depth, '[') +
                              std::string(depth, ']') + "}"));
    folder.refuses_newest("nested deeper");
  }

  void counts_that_no_run_reaches_are_refused_by_name() {
    Folder folder{1, 2};
    const fs::path step = folder.checkpoints() / "step-2";
    const std::string whole = bytes_of(step / "manifest.json");
    int tried = 0;
    for (const char* section : {"cursor", "window", "identity"}) {
      const auto members = nlohmann::ordered_json::parse(whole)[section];
      for (const auto& [key, value] : members.items()) {
        if (!value.is_number_integer()) continue;
        for (const std::int64_t wrong : {INT64_MAX, INT64_MIN, std::int64_t{-1}, (std::int64_t{1} << 53) + 1}) {
          put_bytes(step / "manifest.json", whole);
          resign_manifest(step, [&, name = key](auto& json) { json[section][name] = wrong; });
          const auto opened = folder.open();
          QVERIFY2(opened && opened->checkpoint && opened->checkpoint->name() == "step-1", key.c_str());
          const std::string& refused = opened->refused.at(0);
          // A value that is stored twice, or in the folder's name, may be refused because the two contradict each
          // other.
          QVERIFY2(refused.find(key) != std::string::npos || refused.find("it holds step-") != std::string::npos,
                   refused.c_str());
          ++tried;
        }
      }
    }
    QVERIFY2(tried >= 72, qPrintable(QString::number(tried)));
    put_bytes(step / "manifest.json", whole);
    QCOMPARE(folder.newest(), std::string("step-2"));
  }

  void counts_that_contradict_each_other_are_refused_data() {
    Rows<QString, QString, qlonglong>();
    const auto add = [](const char* section, const char* key, qlonglong value) {
      QTest::addRow("%s.%s", section, key) << section << key << value;
    };
    add("window", "micro_step", 1);
    add("window", "updates", 9);
    add("window", "counter", 9);
    add("window", "steps", (1 << 20) + 1);
    add("window", "next_steps", (1 << 20) + 1);
    add("cursor", "optimizer_steps", 3);
    add("cursor", "best_update", 3);
    add("cursor", "kept_update", 3);
    add("cursor", "unimproved_evaluations", 3);
  }
  void counts_that_contradict_each_other_are_refused() {
    const auto [section, key, value] = current_row<QString, QString, qlonglong>();
    Folder folder{1, 2};
    resign_manifest(folder.checkpoints() / "step-2",
                    [&](auto& json) { json[section.toStdString()][key.toStdString()] = value; });
    folder.refuses_newest(key.toStdString());
  }

  void scales_and_times_that_are_no_numbers_are_refused() {
    Folder folder{1, 2};
    const fs::path step = folder.checkpoints() / "step-2";
    const std::string whole = bytes_of(step / "manifest.json");
    for (const auto& [section, key] : {std::pair("window", "loss_scale"), std::pair("cursor", "seconds")}) {
      for (const char* wrong : {"nan", "inf", "-inf"}) {
        put_bytes(step / "manifest.json", whole);
        resign_manifest(step, [&](auto& json) { json[section][key] = wrong; });
        folder.refuses_newest(key);
      }
    }
  }

  void parts_that_do_not_make_a_tensor_are_refused_by_name_data() {
    const Rows<QString, QString> row;
    const auto add = [&](const char* name, const char* metadata, const char* words = "parameters.w") {
      row(name, metadata, words);
    };
    add("a part alone", R"({"name":"parameters.w","shape":[6,5],"offset":[0,0],"extent":[3,5],"first":0})",
        "15 of its 30 elements");
    add("overlap", R"({"name":"optimizer.exp_avg.w","shape":[3,5],"offset":[0,0],"extent":[3,5],"first":0})",
        "parts overlap");
    add("other shape", R"({"name":"optimizer.exp_avg.w","shape":[6,5],"offset":[3,0],"extent":[3,5],"first":0})",
        "different tensors");
    add("other type", R"({"name":"rank.0.rng.cpu","shape":[64],"offset":[0],"extent":[15],"first":0})",
        "different tensors");
    add("outside", R"({"name":"parameters.w","shape":[3,5],"offset":[1,0],"extent":[3,5],"first":0})", "lies outside");
    add("range outside", R"({"name":"parameters.w","shape":[3,5],"offset":[0,0],"extent":[3,5],"first":1})",
        "lies outside");
    add("negative", R"({"name":"parameters.w","shape":[3,5],"offset":[-1,0],"extent":[3,5],"first":0})",
        "lies outside");
    add("too many elements",
        R"({"name":"parameters.w","shape":[9223372036854775807,9223372036854775807],"offset":[0,0],"extent":[3,5],"first":0})",
        "no number of elements");
    add("other dims", R"({"name":"parameters.w","shape":[3,5],"offset":[0],"extent":[3,5],"first":0})",
        "different numbers of dims");
    add("not a part", R"({"name":"parameters.w"})", "does not say which part");
    add("not JSON", "{", "does not say which part");
    add("deep", "[[[[[[[[]]]]]]]]", "nested too deep");
  }
  void parts_that_do_not_make_a_tensor_are_refused_by_name() {
    const auto [metadata, words] = current_row<QString, QString>();
    Folder folder{1, 2};
    rewrite_shard(folder.checkpoints() / "step-2", "shard-0.safetensors",
                  [&](Archive& archive) { archive.metadata["parameters.w"] = metadata.toStdString(); });
    folder.refuses_newest(words.toStdString());
  }

  void what_the_run_refuses_is_passed_over_and_what_ends_the_search_ends_it() {
    Folder folder{1, 2, 3};
    const auto open = [&](ErrorCode code) {
      return open_checkpoint(
          folder.path(), "newest", identity(),
          [code](const CheckpointReader& checkpoint) -> Result<void> {
            if (checkpoint.cursor().update() == 1) return {};
            return fail(code, "it does not fit", "here");
          },
          *folder.axis);
    };
    const auto passed = open(ErrorCode::protocol);
    QVERIFY2(passed, why(passed).c_str());
    QCOMPARE(passed->checkpoint->name(), std::string("step-1"));
    QCOMPARE(passed->refused.size(), std::size_t{2});
    QCOMPARE(passed->refused[0], std::string("step-3 was refused: here: it does not fit"));
    const auto ended = open(ErrorCode::config);
    QVERIFY(!ended);
    QCOMPARE(ended.error().message, std::string("it does not fit"));
  }

  void a_renamed_folder_is_refused() {
    Folder folder{1};
    fs::rename(folder.checkpoints() / "step-1", folder.checkpoints() / "step-5");
    QCOMPARE(folder.newest(), std::string());
    QVERIFY(folder.open()->refused[0].find("it holds step-1") != std::string::npos);
  }

  void what_is_not_a_checkpoint_is_not_looked_at() {
    Folder folder{4};
    for (const char* name : {".step-9.abc.part", ".trash-step-8.abc", "step-", "step-x", "step--1", "other"})
      fs::create_directories(folder.checkpoints() / name);
    const auto opened = folder.open();
    QCOMPARE(opened->checkpoint->name(), std::string("step-4"));
    QVERIFY(opened->refused.empty());
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

  void never_drops_the_best_one_before_a_better_one() {
    Folder folder;
    const auto save = [&](std::int64_t update, std::int64_t best_update, double loss) {
      CheckpointContent content = content_at(update);
      content.cursor.evaluations = {.best_update = best_update,
                                    .best_loss = loss,
                                    .unimproved = update - best_update,
                                    .kept_update = best_update,
                                    .due = true};
      QVERIFY(folder.save(content, 2).has_value());
    };
    save(1, 1, -2.0);
    for (std::int64_t update = 2; update <= 4; ++update) save(update, 1, -2.0);
    QCOMPARE(folder.names(), (QStringList{"step-1", "step-3", "step-4"}));
    save(5, 5, -2.5);
    QCOMPARE(folder.names(), (QStringList{"step-4", "step-5"}));
    save(6, 5, -2.5);
    save(7, 5, -2.5);
    QCOMPARE(folder.names(), (QStringList{"step-5", "step-6", "step-7"}));
    QCOMPARE(folder.open()->checkpoint->cursor().evaluations, (EvaluationProgress{5, -2.5, 2, 5, true}));
  }

  void a_step_that_exists_is_set_aside_and_not_written_into() {
    Folder folder{1, 2};
    put_bytes(folder.checkpoints() / "step-2" / "shard-0.safetensors", "damaged");
    const auto again = folder.save(content_at(2));
    QVERIFY2(again, why(again).c_str());
    QVERIFY(folder.save(content_at(2)).has_value());
    QCOMPARE(folder.newest(), std::string("step-2"));
    tidy_checkpoints(folder.path());  // which clears none of them
    QCOMPARE(folder.names(), (QStringList{"replaced-step-2", "replaced-step-2.2", "step-1", "step-2"}));
    QCOMPARE(bytes_of(folder.checkpoints() / "replaced-step-2" / "shard-0.safetensors"), std::string("damaged"));
  }

  void whoever_opens_next_clears_what_was_left_lying() {
    Folder folder{1};
    for (const char* name : {".step-9.abc.part", ".trash-step-8.abc", "abandoned-step-7"})
      fs::create_directories(folder.checkpoints() / name / "inside");
    tidy_checkpoints(folder.path());
    QCOMPARE(folder.names(), (QStringList{"abandoned-step-7", "step-1"}));
    tidy_checkpoints(folder.path() / "no such run");
  }

  void a_disk_that_is_full_leaves_what_was_there() {
    Folder folder{1};
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    QCOMPARE(::getrlimit(RLIMIT_FSIZE, &before), 0);
    for (const rlim_t limit : {1, 100, 400}) {  // within the shard's header, its data
      rlimit small = before;
      small.rlim_cur = limit;
      QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);
      const auto saved = folder.save(content_at(2));
      QCOMPARE(::setrlimit(RLIMIT_FSIZE, &before), 0);
      VERIFY_FAILS(saved, ErrorCode::disk, "(ulimit -f)");
      QCOMPARE(folder.names(), QStringList{"step-1"});
      QCOMPARE(folder.newest(), std::string("step-1"));
    }
    QVERIFY(folder.save(content_at(2)).has_value());
    QCOMPARE(folder.newest(), std::string("step-2"));
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
    Folder folder{1};
    CheckpointIdentity now = identity();
    now.data_fingerprint = "e";
    const auto opened = folder.open("newest", now);
    QVERIFY(!opened);
    QCOMPARE(opened.error().code, ErrorCode::data);
  }

  void differences_that_cost_bits_are_named() {
    Folder folder{1};
    CheckpointIdentity now = identity();
    now.threads_per_rank = 2;
    now.cpu_capability = "AVX512";
    now.spec_sha256 = "t";
    const auto opened = folder.open("newest", now);
    QVERIFY2(opened, why(opened).c_str());
    QCOMPARE(opened->not_bit_exact.size(), std::size_t{3});
    QVERIFY(opened->not_bit_exact[0].find("threads") != std::string::npos);
    QVERIFY(opened->not_bit_exact[1].find("AVX512") != std::string::npos);
    QVERIFY(opened->not_bit_exact[2].find("spec") != std::string::npos);
  }
};

ACCRUE_TEST_MAIN(TestCheckpoint)

}  // namespace test_checkpoint
#include "test_checkpoint.moc"
