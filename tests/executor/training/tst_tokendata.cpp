// SPDX-License-Identifier: GPL-3.0-or-later
// Files of tokens: which windows come when, and what is refused.
#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "executor/training/shuffle.h"
#include "executor/training/tokendata.h"
#include "makers/faults.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

#include <functional>
#include <set>

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
    void everyWindowComesOnceBeforeAnyComesAgain_data()
    {
        QTest::addColumn<QString>("ending");
        QTest::addColumn<int>("width");
        QTest::addColumn<int>("pieces");
        QTest::newRow("bin") << ".bin" << 2 << 1;
        QTest::newRow("u16 in pieces") << ".u16" << 2 << 3;
        QTest::newRow("u32") << ".u32" << 4 << 1;
    }
    void everyWindowComesOnceBeforeAnyComesAgain()
    {
        QFETCH(QString, ending);
        QFETCH(int, width);
        QFETCH(int, pieces);
        ModelShape shape = test::smallShape();
        shape.sequencePieces = pieces;
        const int length = int(shape.sequence), rows = int(shape.microbatchSize), microbatches = 2, windows = 12;
        std::vector<std::uint32_t> tokens; // more than twelve windows, and less than thirteen with the token behind
        for (int i = 0; i < windows * length + length; ++i)
            tokens.push_back(std::uint32_t(i % 128));
        QTemporaryDir folder;
        const std::string path = folder.filePath("tokens" + ending).toStdString();
        writeFileAtomically(path, bytesOf(tokens, width), false);
        // A sequence of the whole, from its pieces.
        const auto drawn = [&](const TrainingData& from, std::int64_t step, int microbatch) {
            std::vector<std::vector<std::int32_t>> sequences(static_cast<std::size_t>(rows));
            for (int piece = 0; piece < pieces; ++piece) {
                std::vector<std::int32_t> inputs(std::size_t(shape.tokens())), targets(inputs.size());
                from.sample(step, microbatch * pieces + piece, inputs, targets);
                const auto part = inputs.size() / sequences.size();
                for (std::size_t row = 0; row < sequences.size(); ++row)
                    for (std::size_t i = row * part; i < (row + 1) * part; ++i) {
                        sequences[row].push_back(inputs[i]);
                        if (targets[i] != (inputs[i] + 1) % 128)
                            sequences[row].push_back(-1); // not what follows
                    }
            }
            return sequences;
        };
        std::vector<std::vector<std::vector<std::int32_t>>> orders;
        for (const std::uint64_t seed : {7, 8}) {
            const auto data = loadTrainingData(path, shape, seed, microbatches * pieces);
            std::vector<std::vector<std::int32_t>> all;
            for (int number = 0; int(all.size()) < 2 * windows; ++number)
                for (auto& sequence : drawn(*data, number / microbatches, number % microbatches))
                    all.push_back(std::move(sequence));
            for (int pass = 0; pass < 2; ++pass) {
                std::vector<std::vector<std::int32_t>> own(all.begin() + pass * windows,
                                                           all.begin() + (pass + 1) * windows);
                orders.push_back(own);
                std::set<std::vector<std::int32_t>> expected;
                for (int window = 0; window < windows; ++window) {
                    std::vector<std::int32_t>& one = own[std::size_t(window)];
                    QCOMPARE(int(one.size()), length);
                    std::vector<std::int32_t> sequence;
                    for (int i = 0; i < length; ++i)
                        sequence.push_back((window * length + i) % 128);
                    expected.insert(sequence);
                }
                QCOMPARE(std::set(own.begin(), own.end()), expected);
            }
            // Whoever asks, in whichever order.
            QCOMPARE(drawn(*data, 1, 1), drawn(*loadTrainingData(path, shape, seed, microbatches * pieces), 1, 1));
        }
        for (std::size_t i = 0; i < orders.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                QVERIFY(orders[i] != orders[j]); // another pass, or another seed

        // The last tenth is held back.
        const std::size_t count = tokens.size();
        const SplitData split = loadSplitData(path, shape, 7, microbatches * pieces);
        QCOMPARE(static_cast<const TokenData&>(*split.training).tokens(), count - count / 10);
        QCOMPARE(static_cast<const TokenData&>(*split.heldBack).tokens(), count / 10);
    }

    void aShuffleIsAPermutation()
    {
        for (const std::uint64_t size : {1, 2, 3, 4, 5, 16, 17, 1000}) {
            const Shuffle shuffle(size, 5);
            std::set<std::uint64_t> places;
            for (std::uint64_t i = 0; i < size; ++i)
                places.insert(shuffle.at(i));
            QCOMPARE(places.size(), std::size_t(size));
            QVERIFY(*places.rbegin() < size);
        }
        // The first of many do not stay together.
        const Shuffle large(1'000'000'007, 1);
        int above = 0;
        for (std::uint64_t i = 0; i < 1000; ++i)
            above += large.at(i) > 500'000'000;
        QVERIFY(above > 400 && above < 600);
    }

    void numbersBeyondTwoBytesAreTokens()
    {
        ModelShape shape = test::llamaShape();
        shape.vocabulary = 128'256;
        QTemporaryDir folder;
        const std::string path = folder.filePath("large.u32").toStdString();
        writeFileAtomically(path, bytesOf(std::vector<std::uint32_t>(20, 128'255), 4), false);
        std::vector<std::int32_t> inputs(std::size_t(shape.tokens())), targets(inputs.size());
        TokenData::fromFile(path, shape, 1, 1).sample(0, 0, inputs, targets);
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
                TokenData::fromFile(path, shape, 1, 1).sample(0, 0, inputs, targets);
            });
        };
        QVERIFY(with("empty.bin", "").find("is empty") != std::string::npos);
        QVERIFY(with("odd.bin", std::string(41, 'a')).find("41 bytes are not a number of tokens") != std::string::npos);
        QVERIFY(with("short.bin", std::string(18, '\0')).find("9 tokens are too few") != std::string::npos);
        QVERIFY(with("large.bin", bytesOf(std::vector<std::uint32_t>(30, 300), 2)).find("token 300 at place")
                != std::string::npos);
        QVERIFY(test::faultOf([&] {
                    TokenData::fromFile(folder.filePath("none.bin").toStdString(), shape, 1, 1);
                }).find("cannot be read")
                != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestTokenData, NoApplication)
#include "tst_tokendata.moc"
