// SPDX-License-Identifier: GPL-3.0-or-later
// What encoders and vision transformers are asked: masked tokens of a text, the token that follows, drawn digits; the
// same for everyone who draws the same microbatch.
#include "core/base/diagnostic.h"
#include "executor/training/encoderdata.h"
#include "executor/training/picturedata.h"
#include "makers/faults.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <set>

using namespace pipewright;

namespace {

struct Batch {
    explicit Batch(const ModelShape& shape)
        : inputs(static_cast<std::size_t>(shape.inputs())), targets(static_cast<std::size_t>(shape.targets()))
    {
    }
    Batch(const ModelShape& shape, const TrainingData& data, int step, int microbatch) : Batch(shape)
    {
        data.sample(step, microbatch, inputs, targets);
    }
    bool operator==(const Batch&) const = default;
    std::vector<std::int32_t> inputs, targets;
};

} // namespace

class TestEncoderData : public QObject {
    Q_OBJECT

private slots:
    void fifteenPercentOfEverySequenceAreAskedFor()
    {
        ModelShape shape = test::encoderShape();
        shape.sequence = 40;
        shape.microbatchSize = 50;
        shape.vocabulary = 256;
        ModelShape decoder = shape;
        decoder.architecture = Architecture::Decoder;
        const auto data = loadTrainingData({}, shape, 7, 4), text = loadTrainingData({}, decoder, 7, 4);
        const Batch asked(shape, *data, 2, 1), plain(decoder, *text, 2, 1);
        int masks = 0, kept = 0, others = 0;
        for (std::size_t s = 0; s < 50; ++s) {
            int count = 0;
            for (std::size_t i = 40 * s; i < 40 * (s + 1); ++i) {
                if (asked.targets[i] < 0) {
                    QCOMPARE(asked.inputs[i], plain.inputs[i]);
                    continue;
                }
                ++count;
                QCOMPARE(asked.targets[i], plain.inputs[i]);
                ++(asked.inputs[i] == 255 ? masks : asked.inputs[i] == plain.inputs[i] ? kept : others);
            }
            QCOMPARE(count, 6);
        }
        QVERIFY(masks > 210 && masks < 270 && kept > 10 && others > 10); // of 300: 240, 30 and 30
        QVERIFY(asked == Batch(shape, *data, 2, 1));
        QVERIFY(!(asked == Batch(shape, *data, 2, 2)));
        QVERIFY(!(asked == Batch(shape, *loadTrainingData({}, shape, 8, 4), 2, 1)));
    }

    void aPoolerIsAskedForTheTokenThatFollows()
    {
        const ModelShape shape = test::encoderShape(2, false);
        ModelShape decoder = shape;
        decoder.architecture = Architecture::Decoder;
        const Batch asked(shape, *loadTrainingData({}, shape, 7, 4), 0, 0),
            plain(decoder, *loadTrainingData({}, decoder, 7, 4), 0, 0);
        QCOMPARE(asked.inputs, plain.inputs);
        for (std::size_t s = 0; s < asked.targets.size(); ++s)
            QCOMPARE(asked.targets[s], plain.targets[9 * s + 8] % 12);
    }

    void picturesHaveADigitOnNoise()
    {
        ModelShape shape = test::visionShape();
        shape.vocabulary = 1000;
        shape.sequence = 17;      // four by four patches …
        shape.patchElements = 48; // … of four by four pixels in three colours
        shape.microbatchSize = 60;
        const auto data = loadTrainingData({}, shape, 7, 4);
        const Batch batch(shape, *data, 0, 0);
        std::set<std::int32_t> classes(batch.targets.begin(), batch.targets.end());
        QCOMPARE(classes.size(), std::size_t{10});
        QCOMPARE(*classes.rbegin(), 9);
        for (std::size_t picture = 0; picture < 60; ++picture) {
            const auto begin = batch.inputs.begin() + std::ptrdiff_t(picture * 768);
            QVERIFY(*std::min_element(begin, begin + 768) >= 0);
            QVERIFY(*std::max_element(begin, begin + 768) <= 255);
            const auto bright = std::count_if(begin, begin + 768, [](std::int32_t value) { return value >= 128; });
            QVERIFY2(bright >= 3 * 4 && bright < 500, qPrintable(QString::number(bright)));
        }
        QVERIFY(batch == Batch(shape, *data, 0, 0));
        QVERIFY(!(batch == Batch(shape, *data, 1, 0)));
        shape.vocabulary = 4;
        const Batch few(shape, *loadTrainingData({}, shape, 7, 4), 0, 0);
        QCOMPARE(*std::max_element(few.targets.begin(), few.targets.end()), 3);
    }

    void heldBackPicturesAreOthers()
    {
        const ModelShape shape = test::visionShape();
        const SplitData split = loadSplitData({}, shape, 7, 4);
        QVERIFY(!(Batch(shape, *split.training, 0, 0) == Batch(shape, *split.heldBack, 0, 0)));
    }

    void filesOfPicturesAreRefused()
    {
        QVERIFY_THROWS_EXCEPTION(Error, loadTrainingData("pictures", test::visionShape(), 1, 4));
    }
};

PIPEWRIGHT_TEST(TestEncoderData, NoApplication)
#include "tst_encoderdata.moc"
