// SPDX-License-Identifier: GPL-3.0-or-later
// The byte-level text: what is read, how windows are drawn, and what is said when there is nothing to read.
#include "core/base/diagnostic.h"
#include "executor/stage/gptreference.h"
#include "executor/training/textdata.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

#include <fstream>

using namespace pipewright;
using namespace pipewright::test;

namespace {

void write(const std::filesystem::path& path, const std::string& text)
{
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

std::string complaintOf(const std::function<void()>& action)
{
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

} // namespace

class TestTextData : public QObject {
    Q_OBJECT
private slots:
    void targetsAreTheTokensThatFollow()
    {
        const ModelShape shape = smallShape();
        const std::string text = "the quick brown fox jumps over the lazy dog";
        const TextData data = TextData::fromText(text, "test", shape, 1);
        std::vector<std::int32_t> tokens(std::size_t(shape.tokens())), targets(tokens.size());
        data.sample(0, 0, tokens, targets);
        const auto sequence = std::size_t(shape.sequence);
        for (std::size_t at = 0; at < tokens.size(); at += sequence) {
            const std::string window(tokens.begin() + at, tokens.begin() + at + sequence);
            QVERIFY(text.find(window + char(targets[at + sequence - 1])) != std::string::npos);
            for (std::size_t i = 0; i + 1 < sequence; ++i)
                QCOMPARE(targets[at + i], tokens[at + i + 1]);
        }
    }

    void piecesAreCutFromTheSameWindows()
    {
        ModelShape whole = smallShape();
        whole.sequence = 12;
        std::string text;
        for (int i = 0; i < 1000; ++i)
            text += char('a' + i * i % 23);
        const auto draw = [&](const ModelShape& shape, int microbatch) {
            std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> drawn;
            drawn.first.resize(std::size_t(shape.tokens()));
            drawn.second.resize(drawn.first.size());
            TextData::fromText(text, "test", shape, 7).sample(2, microbatch, drawn.first, drawn.second);
            return drawn;
        };
        ModelShape cut = whole;
        cut.sequencePieces = 3;
        for (int sequence = 0; sequence < 2; ++sequence) {
            const auto [tokens, targets] = draw(whole, sequence);
            for (int piece = 0; piece < 3; ++piece) {
                const auto [part, partTargets] = draw(cut, 3 * sequence + piece);
                for (std::size_t row = 0; row < std::size_t(whole.microbatchSize); ++row)
                    for (std::size_t i = 0; i < 4; ++i) {
                        QCOMPARE(part[row * 4 + i], tokens[row * 12 + std::size_t(piece) * 4 + i]);
                        QCOMPARE(partTargets[row * 4 + i], targets[row * 12 + std::size_t(piece) * 4 + i]);
                    }
            }
        }
    }

    void samplesDependOnSeedStepAndMicrobatchAlone()
    {
        const ModelShape shape = smallShape();
        std::string text;
        for (int i = 0; i < 1000; ++i)
            text += char('a' + i * i % 23);
        const auto draw = [&](std::uint64_t seed, int step, int microbatch) {
            std::vector<std::int32_t> tokens(std::size_t(shape.tokens())), targets(tokens.size());
            TextData::fromText(text, "test", shape, seed).sample(step, microbatch, tokens, targets);
            return tokens;
        };
        QCOMPARE(draw(1, 2, 3), draw(1, 2, 3));
        QVERIFY(draw(1, 2, 3) != draw(2, 2, 3));
        QVERIFY(draw(1, 2, 3) != draw(1, 3, 3));
        QVERIFY(draw(1, 2, 3) != draw(1, 2, 4));
        QVERIFY(draw(1, 1, 12) != draw(1, 11, 2));
    }

    void theShortestTextHasOneWindow()
    {
        const ModelShape shape = smallShape();
        const TextData data = TextData::fromText("0123456789", "test", shape, 1);
        std::vector<std::int32_t> tokens(std::size_t(shape.tokens())), targets(tokens.size());
        data.sample(0, 0, tokens, targets);
        QCOMPARE(tokens[0], '0');
        QCOMPARE(targets[std::size_t(shape.sequence) - 1], '9');
    }

    void aFolderIsReadInTheOrderOfItsPathsAndOnlyItsText()
    {
        QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        write(root / "b.cpp", "second file;");
        write(root / "a" / "z.md", "first file;");
        write(root / "c.png", "not text");
        write(root / ".git" / "x.txt", "hidden");
        write(root / "empty.txt", "");
        QCOMPARE(TextData::fromPath(root, smallShape(), 1).text(), std::string("first file;second file;"));
        write(root / "d.dat", "named alone, any file is text");
        QCOMPARE(TextData::fromPath(root / "d.dat", smallShape(), 1).text(),
                 std::string("named alone, any file is text"));
    }

    void aLargeFolderIsCutAtTheLimit()
    {
        QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        write(root / "a.txt", std::string(TextData::byteLimit - 5, 'a'));
        write(root / "b.txt", std::string(100, 'b'));
        write(root / "c.txt", std::string(100, 'c'));
        const TextData data = TextData::fromPath(root, smallShape(), 1);
        QCOMPARE(data.text().size(), TextData::byteLimit);
        QVERIFY(data.text().ends_with("abbbbb"));
    }

    void complaintsNameThePlaceAndTheRemedy()
    {
        QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        const ModelShape shape = smallShape();
        const auto complaint = [&](const std::filesystem::path& path) {
            return complaintOf([&] { TextData::fromPath(path, shape, 1); });
        };
        write(root / "empty.txt", "");
        write(root / "short.txt", "123456789");
        write(root / "latin.txt", "gr\xfc\xdf Gott, liebe Welt");
        std::filesystem::create_directory(root / "bare");
        QVERIFY(complaint(root / "missing.txt").find("no such file") != std::string::npos);
        QVERIFY(complaint(root / "bare").find("no text or source files") != std::string::npos);
        QVERIFY(complaint(root / "empty.txt").find("no text to train on") != std::string::npos);
        const std::string tooShort = complaint(root / "short.txt");
        QVERIFY(tooShort.find("9 bytes, too short for sequences of 9") != std::string::npos);
        QVERIFY(tooShort.find("at least 10 bytes") != std::string::npos);
        QVERIFY(tooShort.find("short.txt") != std::string::npos);
        QVERIFY(complaint(root / "latin.txt").find("byte 252 lies outside the model's vocabulary of 128")
                != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestTextData, NoApplication)
#include "tst_textdata.moc"
