// SPDX-License-Identifier: GPL-3.0-or-later
// Headers of safetensors files that lie about numbers and places.
#include "core/base/diagnostic.h"
#include "executor/run/safetensorsfile.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

#include <cstdint>
#include <fstream>
#include <string>

using namespace pipewright;

class TestSafetensorsFile : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    /// The path of a file with this header and as many bytes behind it.
    std::string file(const std::string& header, std::size_t bytes) const
    {
        std::string path = m_folder.filePath("file.safetensors").toStdString();
        std::ofstream stream(path, std::ios::binary);
        const std::uint64_t length = header.size();
        for (int i = 0; i < 8; ++i)
            stream.put(static_cast<char>(length >> (8 * i)));
        stream << header << std::string(bytes, '\0');
        return path;
    }

private Q_SLOTS:
    void aHeaderThatLiesIsRefusedWithTheReason_data()
    {
        QTest::addColumn<QString>("entry");
        QTest::addColumn<QString>("reason");
        const QString none = "no type, shape and place", outside = "outside of the file";
        QTest::newRow("fractions") << R"("dtype":"F32","shape":[2],"data_offsets":[0.5,8.5])" << none;
        QTest::newRow("far too large") << R"("dtype":"F32","shape":[2],"data_offsets":[1e308,1e308])" << none;
        QTest::newRow("below zero") << R"("dtype":"F32","shape":[2],"data_offsets":[-8,0])" << none;
        QTest::newRow("a shape below zero") << R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])" << none;
        QTest::newRow("a shape of words") << R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])" << none;
        QTest::newRow("places that wrap around")
            << R"("dtype":"F32","shape":[2],"data_offsets":[18446744073709551600,18446744073709551608])" << outside;
        QTest::newRow("an extent beyond 2^63") << R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8])"
                                               << "larger than the file";
    }

    void aHeaderThatLiesIsRefusedWithTheReason()
    {
        QFETCH(QString, entry);
        QFETCH(QString, reason);
        try {
            SafetensorsFile::open(file(R"({"a":{)" + entry.toStdString() + "}}", 8));
            QFAIL("it was taken");
        } catch (const Error& error) {
            QVERIFY2(QString::fromStdString(error.what()).contains(reason), error.what());
        }
    }

    void aRightOneIsRead()
    {
        const SafetensorsFile right =
            SafetensorsFile::open(file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
        QCOMPARE(right.values("a").size(), std::size_t{2});
    }
};

PIPEWRIGHT_TEST(TestSafetensorsFile, NoApplication)
#include "tst_safetensorsfile.moc"
