// SPDX-License-Identifier: GPL-3.0-or-later
// Files that are read ahead of who parses them.
#include "core/base/diagnostic.h"
#include "errorof.h"
#include "testmain.h"
#include "traces/import/bytesource.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <random>

#include <zlib.h>

using namespace pipewright;

class TestByteSource : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    std::string path(const char* name) const { return m_folder.filePath(QLatin1String(name)).toStdString(); }

    static std::string noise(std::size_t bytes)
    {
        std::minstd_rand random(1);
        std::string text(bytes, '\0');
        for (char& c : text)
            c = static_cast<char>('a' + random() % 8);
        return text;
    }

    static std::string readAll(ByteSource& source)
    {
        std::string text, piece(12'345, '\0');
        while (const std::size_t got = source.read(piece.data(), piece.size()))
            text.append(piece, 0, got);
        return text;
    }

private Q_SLOTS:
    void aCompressedFileIsReadUpToItsLimit()
    {
        const std::string text(3 << 20, ' '), bomb = path("bomb.gz"), plain = path("plain");
        for (const std::string& file : {bomb, plain}) {
            gzFile to = gzopen(file.c_str(), file == bomb ? "wb9" : "wbT");
            QCOMPARE(gzwrite(to, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
            QCOMPARE(gzclose(to), Z_OK);
        }
        const auto readWith = [](const std::string& file, std::uint64_t most) {
            return readAll(*openBytes(file, most)).size();
        };
        const std::string error = test::errorOf([&] { readWith(bomb, 1 << 20); });
        QVERIFY2(error.find("takes more than 1 MiB when it is decompressed") != std::string::npos, error.c_str());
        QCOMPARE(readWith(bomb, text.size()), text.size());
        QCOMPARE(readWith(plain, 1 << 20), text.size()); // as large as it looks
    }

    void everythingComesInOrder_data()
    {
        QTest::addColumn<bool>("compressed");
        QTest::newRow("plain") << false;
        QTest::newRow("gzip") << true;
    }
    void everythingComesInOrder()
    {
        QFETCH(bool, compressed);
        const std::string text = noise(9'000'001), file = path(compressed ? "whole.gz" : "whole");
        gzFile to = gzopen(file.c_str(), compressed ? "wb1" : "wbT");
        QCOMPARE(gzwrite(to, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
        QCOMPARE(gzclose(to), Z_OK);
        const auto source = openBytes(file);
        QVERIFY(readAll(*source) == text);
        QCOMPARE(source->fraction(), 1.0);
        QVERIFY(source->complaint().empty());
        char more = 0;
        QCOMPARE(source->read(&more, 1), std::size_t{0}); // the end stays the end
    }

    void aFileThatIsCutShortSaysSoAfterItsEnd()
    {
        const std::string text = noise(3'000'000), file = path("cut.gz");
        gzFile to = gzopen(file.c_str(), "wb1");
        gzwrite(to, text.data(), static_cast<unsigned>(text.size()));
        gzclose(to);
        QFile cut(QString::fromStdString(file));
        QVERIFY(cut.resize(cut.size() / 2));
        const auto source = openBytes(file);
        const std::string read = readAll(*source);
        QVERIFY(read.size() < text.size() && text.starts_with(read));
        QCOMPARE(source->complaint(), std::string("the compressed file ends too early"));
    }

    void whoStopsEarlyWaitsForNothing()
    {
        QFile file(QString::fromStdString(path("long")));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.resize(64 << 20));
        file.close();
        const auto source = openBytes(path("long"));
        char first = 1;
        QCOMPARE(source->read(&first, 1), std::size_t{1});
        QCOMPARE(first, '\0');
    }

    void aFolderIsRefusedBeforeAnythingIsRead()
    {
        QVERIFY_THROWS_EXCEPTION(Error, openBytes(m_folder.path().toStdString()));
    }
};

PIPEWRIGHT_TEST(TestByteSource, NoApplication)
#include "tst_bytesource.moc"
