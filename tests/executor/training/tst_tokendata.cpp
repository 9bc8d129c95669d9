// SPDX-License-Identifier: GPL-3.0-or-later
// Files of tokens: the windows that a text of the same tokens gives, and what is refused.
#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "executor/training/textdata.h"
#include "executor/training/tokendata.h"
#include "makers/faults.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

#include <functional>

using namespace pipewright;

namespace {

std::string bytesOf(const std::vector<std::uint32_t>& tokens, int width)
{
    std::string bytes;
    for (const std::uint32_t token : tokens)
        for (int i = 0; i < width; ++i)
            bytes += static_cast<char>(token >> (8 * i) & 0xff);
    return bytes;
}

} // namespace

class TestTokenData : public QObject {
    Q_OBJECT

private slots:
    void tokensAreThoseOfATextWithTheSameOnes_data()
    {
        QTest::addColumn<QString>("ending");
        QTest::addColumn<int>("width");
        QTest::addColumn<int>("pieces");
        QTest::newRow("bin") << ".bin" << 2 << 1;
        QTest::newRow("u16 in pieces") << ".u16" << 2 << 3;
        QTest::newRow("u32") << ".u32" << 4 << 1;
    }
    void tokensAreThoseOfATextWithTheSameOnes()
    {
        QFETCH(QString, ending);
        QFETCH(int, width);
        QFETCH(int, pieces);
        ModelShape shape = test::smallShape();
        shape.sequencePieces = pieces;
        std::string text;
        std::vector<std::uint32_t> tokens;
        for (std::uint32_t i = 0; i < 500; ++i) {
            tokens.push_back(i * i % 127);
            text += static_cast<char>(tokens.back());
        }
        QTemporaryDir folder;
        const std::string path = folder.filePath("tokens" + ending).toStdString();
        writeFileAtomically(path, bytesOf(tokens, width), false);
        const auto data = loadTrainingData(path, shape, 7);
        const TextData same = TextData::fromText(text, "text", shape, 7);
        const auto drawn = [&](const TrainingData& from, int step, int microbatch) {
            std::vector<std::int32_t> inputs(std::size_t(shape.tokens())), targets(inputs.size());
            from.sample(step, microbatch, inputs, targets);
            inputs.insert(inputs.end(), targets.begin(), targets.end());
            return inputs;
        };
        for (const auto& [step, microbatch] : {std::pair{0, 0}, {0, 1}, {3, 2}})
            QCOMPARE(drawn(*data, step, microbatch), drawn(same, step, microbatch));
        QVERIFY(drawn(*data, 0, 0) != drawn(*data, 1, 0));

        // The last tenth is held back.
        const SplitData split = loadSplitData(path, shape, 7);
        QCOMPARE(static_cast<const TokenData&>(*split.training).tokens(), std::size_t(450));
        QCOMPARE(static_cast<const TokenData&>(*split.heldBack).tokens(), std::size_t(50));
    }

    void numbersBeyondTwoBytesAreTokens()
    {
        ModelShape shape = test::llamaShape();
        shape.vocabulary = 128'256;
        QTemporaryDir folder;
        const std::string path = folder.filePath("large.u32").toStdString();
        writeFileAtomically(path, bytesOf(std::vector<std::uint32_t>(20, 128'255), 4), false);
        std::vector<std::int32_t> inputs(std::size_t(shape.tokens())), targets(inputs.size());
        TokenData::fromFile(path, shape, 1).sample(0, 0, inputs, targets);
        QCOMPARE(inputs.front(), 128'255);
    }

    void whatDoesNotFitIsRefused()
    {
        const ModelShape shape = test::smallShape(); // sequences of 9, a vocabulary of 128
        QTemporaryDir folder;
        const auto with = [&](const char* name, const std::string& bytes) {
            const std::string path = folder.filePath(name).toStdString();
            writeFileAtomically(path, bytes, false);
            return test::faultOf([&] {
                std::vector<std::int32_t> inputs(std::size_t(shape.tokens())), targets(inputs.size());
                TokenData::fromFile(path, shape, 1).sample(0, 0, inputs, targets);
            });
        };
        QVERIFY(with("empty.bin", "").find("is empty") != std::string::npos);
        QVERIFY(with("odd.bin", std::string(41, 'a')).find("41 bytes are not a number of tokens") != std::string::npos);
        QVERIFY(with("short.bin", std::string(18, '\0')).find("9 tokens are too few") != std::string::npos);
        QVERIFY(with("large.bin", bytesOf(std::vector<std::uint32_t>(30, 300), 2)).find("token 300 at place")
                != std::string::npos);
        QVERIFY(test::faultOf([&] {
                    TokenData::fromFile(folder.filePath("none.bin").toStdString(), shape, 1);
                }).find("cannot be read")
                != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestTokenData, NoApplication)
#include "tst_tokendata.moc"
