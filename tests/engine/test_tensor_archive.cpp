// SPDX-License-Identifier: Apache-2.0
// The safetensors codec: what it writes is read by others (Python's package where it is installed, and a reader of this
// test's own), and whatever is wrong with a file is refused by name.
#include <ATen/ATen.h>
#include <sys/resource.h>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <cstring>

#include "accrue/checkpoint/tensor_archive.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_tensor_archive {

using namespace accrue;

namespace {

NamedTensors one_of_each() {
  at::manual_seed(0);
  return {{"weight", at::randn({3, 4})},
          {"moments", at::randn({5}, at::kDouble)},
          {"half", at::randn({2, 2}).to(at::kHalf)},
          {"brain", at::randn({2, 3}).to(at::kBFloat16)},
          {"mask", at::tensor({1, 0, 1}).to(at::kBool)},
          {"bytes", at::arange(7, at::kByte)},
          {"ints", at::arange(-2, 3, at::kInt)},
          {"longs", at::tensor({std::int64_t{1} << 40})},
          {"scalar", at::full({}, 2.5)},
          {"nothing", at::empty({0, 4})}};
}

QByteArray contents(const QString& file) {
  QFile in(file);
  return in.open(QIODevice::ReadOnly) ? in.readAll() : QByteArray();
}

/// A file with this header and this many bytes of data.
QByteArray made(const QByteArray& header, int data_bytes) {
  QByteArray file(8, '\0');
  const quint64 length = static_cast<quint64>(header.size());
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + QByteArray(data_bytes, '\1');
}

}  // namespace

class TestTensorArchive : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { QVERIFY(folder_.isValid()); }

  void returns_what_was_written() {
    const auto tensors = one_of_each();
    const auto written = write_archive(fresh(), tensors, {{"format", "pt"}, {"note", "ä \"quoted\""}});
    QVERIFY2(written, written ? "" : written.error().text().c_str());
    const auto read = read_archive(last());
    QVERIFY2(read, read ? "" : read.error().text().c_str());
    QCOMPARE(read->tensors.size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor* found = read->find(tensors[i].first);
      QVERIFY(found != nullptr);
      QCOMPARE(found->scalar_type(), tensors[i].second.scalar_type());
      QVERIFY(at::equal(*found, tensors[i].second));
    }
    QCOMPARE(read->metadata.at("note"), std::string("ä \"quoted\""));
    QCOMPARE(read->xxh3, written->xxh3);
    QCOMPARE(static_cast<qint64>(written->bytes), QFile(path()).size());
    QVERIFY(read->find("absent") == nullptr);
  }

  void strided_tensors_are_written_row_by_row() {
    const at::Tensor matrix = at::arange(6, at::kFloat).view({2, 3});
    QVERIFY(write_archive(fresh(), {{"t", matrix.t()}}));
    QVERIFY(at::equal(*read_archive(last())->find("t"), matrix.t()));
  }

  void an_independent_reader_finds_the_same_numbers() {
    const auto tensors = one_of_each();
    QVERIFY(write_archive(fresh(), tensors, {{"k", "v"}}));
    const QByteArray file = contents(path());
    quint64 length = 0;
    std::memcpy(&length, file.constData(), sizeof length);
    QCOMPARE((length + 8) % 8, quint64{0});
    const QJsonObject header = QJsonDocument::fromJson(file.mid(8, static_cast<qsizetype>(length))).object();
    QCOMPARE(header.size(), static_cast<qsizetype>(tensors.size() + 1));
    QCOMPARE(header["__metadata__"].toObject()["k"].toString(), QString("v"));
    const QJsonObject weight = header["weight"].toObject();
    QCOMPARE(weight["dtype"].toString(), QString("F32"));
    QCOMPARE(weight["shape"].toArray(), (QJsonArray{3, 4}));
    const auto begin = static_cast<qsizetype>(8 + length) + weight["data_offsets"].toArray()[0].toInt();
    QCOMPARE(std::memcmp(file.constData() + begin, tensors[0].second.const_data_ptr(), 48), 0);
  }

  void python_safetensors_opens_it() {
    const QString python = QStandardPaths::findExecutable("python3");
    if (python.isEmpty() || QProcess::execute(python, {"-c", "import safetensors, numpy"}) != 0) {
      QSKIP("python3 with safetensors and numpy is not installed: the independent reader above checks the format");
    }
    QVERIFY(write_archive(fresh(), {{"weight", at::arange(6, at::kFloat).view({2, 3})}}));
    const QString script =
        "import sys; from safetensors.numpy import load_file; w = load_file(sys.argv[1])['weight'];"
        "sys.exit(0 if w.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] else 1)";
    QCOMPARE(QProcess::execute(python, {"-c", script, path()}), 0);
  }

  void never_overwrites() {
    QVERIFY(write_archive(fresh(), {{"a", at::ones({2})}}));
    const QByteArray before = contents(path());
    const auto again = write_archive(last(), {{"b", at::zeros({9})}});
    QVERIFY(!again);
    QCOMPARE(again.error().code, ErrorCode::disk);
    QCOMPARE(contents(path()), before);
  }

  void refuses_to_write_what_it_could_not_read_back() {
    QVERIFY(!write_archive(fresh(), {{"a", at::ones({1})}, {"a", at::ones({1})}}));
    QVERIFY(!write_archive(fresh(), {{"__metadata__", at::ones({1})}}));
    QVERIFY(!write_archive(fresh(), {{"c", at::ones({1}, at::kComplexFloat)}}));
    QVERIFY(!QFile::exists(path()));
  }

  void a_limit_on_files_is_named_with_its_value_and_leaves_nothing() {
    struct rlimit before {};
    QCOMPARE(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small { 4096, before.rlim_max };
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto written = write_archive(fresh(), {{"big", at::zeros({100'000})}});
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_handler);
    VERIFY_FAILS(written, ErrorCode::disk, "a file may hold at most 4.0 KiB (ulimit -f)");
    QVERIFY(!QFile::exists(path()));
    const auto nowhere = write_archive(folder_.filePath("no/such/folder.st").toStdString(), {});
    QCOMPARE(nowhere.error().code, ErrorCode::disk);
  }

  void damaged_files_are_refused_by_name_data() {
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<QByteArray>("reason");
    const auto row = [](const char* name, const QByteArray& file, const char* reason) {
      QTest::newRow(name) << file << QByteArray(reason);
    };
    const auto tensor = [](const char* fields, int data = 8) {
      return made(QByteArray("{\"a\":{") + fields + "}}", data);
    };
    row("empty", "", "too few");
    row("seven bytes", "1234567", "too few");
    row("huge header", QByteArray(8, '\x7f') + "{}", "8 MB");
    row("header beyond the end", made("{}", 0).left(9), "the header claims 2 bytes");
    row("empty header", made("", 0), "does not begin with {");
    row("leading space", made(" {}", 0), "does not begin with {");
    row("not JSON", made("{\"a\":", 0), "not valid JSON");
    row("text after the header", made("{} x", 0), "not valid JSON");
    row("list at the top", made("[]", 0), "does not begin with {");
    row("deep nesting", made(QByteArray("{\"a\":") + QByteArray(200'000, '['), 0), "a list where none belongs");
    row("tensor is a number", made("{\"a\":1}", 0), "a number where none belongs");
    row("unknown dtype", tensor(R"("dtype":"Q4","shape":[2],"data_offsets":[0,8])"), "\"Q4\" is not supported");
    row("unknown field", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)"), "unknown field \"x\"");
    row("missing shape", tensor(R"("dtype":"F32","data_offsets":[0,8])"), "is missing");
    row("missing everything", tensor(""), "is missing");
    row("repeated field", tensor(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])"), "occurs twice");
    row("repeated name",
        made(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
             R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
             8),
        "occurs twice");
    row("repeated metadata", made(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "occurs twice");
    row("metadata number", made(R"({"__metadata__":{"k":1}})", 0), "a number where none belongs");
    row("negative size", tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "a negative number");
    row("fraction", tensor(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), "is not a whole number");
    row("number beyond 64 bits", tensor(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8])"),
        "is not a whole number");
    row("number beyond 63 bits", tensor(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"),
        "out of range");
    row("product overflows", tensor(R"("dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8])"),
        "more elements than any file");
    row("huge tensor", tensor(R"("dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104])"),
        "ends at byte 4398046511104 of 8");
    row("too many dimensions",
        tensor(
            (R"("dtype":"F32","shape":[)" + QByteArray("1,").repeated(64) + R"(2],"data_offsets":[0,8])").constData()),
        "more than 64 dimensions");
    row("one offset", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8])"), "needs two numbers");
    row("three offsets", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4,8])"), "more than two numbers");
    row("offsets backwards", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "run backwards");
    row("shape too small", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])"), "shape and dtype need 4 bytes");
    row("overlap",
        made(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
             R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
             6),
        "overlaps");
    row("hole",
        made(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
             R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
             8),
        "a hole of 2 bytes");
    row("hole at the start", tensor(R"("dtype":"U8","shape":[4],"data_offsets":[4,8])"), "a hole of 4 bytes");
    row("trailing byte", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", 9),
        "1 bytes after the last tensor");
    row("data cut short", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", 7), "ends at byte 8 of 7");
    row("bool of two", made(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 0) + '\2', "neither 0 nor 1");
    row("null", made(R"({"a":null})", 0), "null has no place");
    row("text not UTF-8", made("{\"\xff\":{}}", 0), "not valid JSON");
  }
  void damaged_files_are_refused_by_name() {
    QFETCH(QByteArray, file);
    QFETCH(QByteArray, reason);
    write(file);
    const auto read = read_archive(last());
    QVERIFY(!read);
    QCOMPARE(read.error().code, ErrorCode::protocol);
    QVERIFY2(QByteArray::fromStdString(read.error().message).contains(reason), read.error().text().c_str());
    QVERIFY(read.error().where.find(last().string()) == 0);
    QVERIFY(!read.error().hint.empty());
  }

  void every_truncation_is_refused() {
    QVERIFY(write_archive(fresh(), one_of_each()));
    const QByteArray whole = contents(path());
    for (qsizetype size = 0; size < whole.size(); ++size) {
      write(whole.left(size));
      QVERIFY2(!read_archive(last()), qPrintable(QString::number(size)));
    }
  }

  // A flipped bit in the header may leave another valid header; in the data it always leaves a valid file. Then the
  // hash differs, which is what the checkpoint's manifest compares.
  void every_flipped_bit_is_refused_or_changes_the_hash() {
    NamedTensors tensors = one_of_each();
    tensors.erase(tensors.begin() + 2, tensors.begin() + 4);
    const auto written = write_archive(fresh(), tensors, {{"format", "pt"}});
    QVERIFY(written);
    QByteArray file = contents(path());
    for (qsizetype bit = 0; bit < file.size() * 8; ++bit) {
      const char mask = static_cast<char>(1 << (bit % 8));
      file[bit / 8] = static_cast<char>(file[bit / 8] ^ mask);
      write(file);
      const auto read = read_archive(last());
      QVERIFY2(!read || read->xxh3 != written->xxh3, qPrintable(QString::number(bit)));
      if (!read) QVERIFY(!read.error().message.empty());
      file[bit / 8] = static_cast<char>(file[bit / 8] ^ mask);
    }
  }

  void absent_and_irregular_files_are_disk_errors() {
    QCOMPARE(read_archive(folder_.filePath("absent").toStdString()).error().code, ErrorCode::disk);
    QCOMPARE(read_archive(folder_.path().toStdString()).error().code, ErrorCode::disk);
  }

  void weights_hash_ignores_order_and_sees_everything_else() {
    const at::Tensor a = at::arange(6, at::kFloat), b = at::ones({2});
    const std::string hash = weights_sha256({{"a", a}, {"b", b}});
    QCOMPARE(hash.size(), std::size_t{64});
    QCOMPARE(weights_sha256({{"b", b}, {"a", a}}), hash);
    QVERIFY(weights_sha256({{"a", a.view({2, 3})}, {"b", b}}) != hash);
    QVERIFY(weights_sha256({{"a", b}, {"b", a}}) != hash);
    QVERIFY(weights_sha256({{"a", a.to(at::kDouble)}, {"b", b}}) != hash);
    at::Tensor changed = a.clone();
    changed[5] = 5.0000005;
    QVERIFY(weights_sha256({{"a", changed}, {"b", b}}) != hash);
  }

 private:
  std::filesystem::path fresh() {
    path_ = folder_.filePath(QString("archive-%1.safetensors").arg(++count_));
    return last();
  }
  std::filesystem::path last() const { return path_.toStdString(); }
  QString path() const { return path_; }
  void write(const QByteArray& bytes) {
    if (path_.isEmpty()) fresh();
    QFile::remove(path_);  // truncating an existing file makes some file systems flush it
    QFile out(path_);
    QVERIFY(out.open(QIODevice::WriteOnly | QIODevice::Truncate));
    QCOMPARE(out.write(bytes), bytes.size());
  }

  QTemporaryDir folder_;
  QString path_;
  int count_ = 0;
};

ACCRUE_TEST_MAIN(TestTensorArchive)

}  // namespace test_tensor_archive
#include "test_tensor_archive.moc"
