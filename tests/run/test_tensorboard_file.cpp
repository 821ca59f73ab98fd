// SPDX-License-Identifier: Apache-2.0
// TensorBoard's files byte by byte: the checksum's published check values, and an event encoded by hand.
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "accrue/run/record/tensorboard_file.h"
#include "support/test_program.h"

namespace test_tensorboard_file {

using namespace accrue;

namespace {

QByteArray hex(const std::string& bytes) {
  return QByteArray::fromStdString(bytes).toHex();
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

class TestTensorboardFile : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// RFC 3720, appendix B.4, and the check value of the CRC catalogues.
  void checksums() {
    QCOMPARE(crc32c("123456789"), 0xe3069283U);
    QCOMPARE(crc32c(std::string(32, '\0')), 0x8a9136aaU);
    QCOMPARE(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
    QCOMPARE(crc32c(""), 0U);
  }

  /// wall_time 1.0, step 300 (ac 02), one scalar "lm" = 0.5.
  void an_event_by_hand() {
    // 09 double | 10 varint | 2a length { 0a length { 0a 02 "lm" 15 float } }
    const QByteArray event =
        "09000000000000f03f"
        "10ac02"
        "2a0b"
        "0a09"
        "0a026c6d"
        "150000003f";
    QCOMPARE(hex(tensorboard_event(1.0, 300, {{"lm", 0.5}})), event);
    QCOMPARE(hex(tensorboard_version_event(1.0)), QByteArray("09000000000000f03f"
                                                             "1a0d"
                                                             "627261696e2e4576656e743a32"));
  }

  /// The masked checksum of the eight bytes of the length 0 is that which every empty record has.
  void a_record_by_hand() {
    // crc32c of eight zero bytes is 8c28b28a; rotated right by 15 it is 65151851; plus a282ead8 it is 07980329.
    QCOMPARE(crc32c(std::string(8, '\0')), 0x8c28b28aU);
    QCOMPARE(hex(tensorboard_record("")), QByteArray("0000000000000000"
                                                     "29039807"
                                                     "d8ea82a2"));
    const std::string record = tensorboard_record("abc");
    QCOMPARE(record.size(), std::size_t{8 + 4 + 3 + 4});
    QCOMPARE(hex(record.substr(0, 8)), QByteArray("0300000000000000"));
    // crc32c("abc") = 364b3fb7: rotated 7f6e6c96, plus the mask 21f1576e.
    QCOMPARE(crc32c("abc"), 0x364b3fb7U);
    QCOMPARE(hex(record.substr(15)), QByteArray("6e57f121"));
  }

  void a_file_has_its_version_and_its_events() {
    const QTemporaryDir folder;
    const auto path = std::filesystem::path(folder.path().toStdString()) / "new" / "folder";
    auto file = TensorboardFile::create(path, 5.0);
    QVERIFY2(file.has_value(), file ? "" : file.error().text().c_str());
    QVERIFY(file->add(6.0, 1, {{"a", 1.0}, {"b", 2.0}}).has_value());
    QCOMPARE(hex(contents(file->path())), hex(tensorboard_record(tensorboard_version_event(5.0)) +
                                              tensorboard_record(tensorboard_event(6.0, 1, {{"a", 1.0}, {"b", 2.0}}))));
    QVERIFY(file->path().filename().string().starts_with("events.out.tfevents.5."));
    // Another in the same second takes a name of its own.
    const auto second = TensorboardFile::create(path, 5.0);
    QVERIFY(second.has_value());
    QVERIFY(second->path() != file->path());
  }

  void a_folder_that_cannot_be_made_is_refused_by_name() {
    const QTemporaryDir folder;
    const auto taken = std::filesystem::path(folder.path().toStdString()) / "file";
    std::ofstream(taken) << "x";
    const auto file = TensorboardFile::create(taken / "below", 1.0);
    QVERIFY(!file.has_value());
    QCOMPARE(file.error().code, ErrorCode::disk);
    QVERIFY(QString::fromStdString(file.error().text()).contains("below"));
  }
};

ACCRUE_TEST_MAIN(TestTensorboardFile)

}  // namespace test_tensorboard_file
#include "test_tensorboard_file.moc"
