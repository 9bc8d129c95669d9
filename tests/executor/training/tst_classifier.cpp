// SPDX-License-Identifier: GPL-3.0-or-later
// The classifier of chunks of files: its data comes from real files and repeats itself, its gradients are slopes, any
// schedule trains it to the bits of the sequential run, and it learns to tell kinds of files apart.
#include "testmain.h"

#include <QTest>

#include "core/design/designbuilder.h"
#include "core/model/transformer.h"
#include "core/presets/presets.h"
#include "executor/experiment/experiment.h"
#include "executor/run/run.h"
#include "executor/stage/gptreference.h"
#include "executor/training/chunkdata.h"
#include "makers/designs.h"

#include <QDir>
#include <QTemporaryDir>

#include <cmath>

using namespace pipewright;
using namespace pipewright::test;

namespace {

ModelShape tinyClassifier(int classes = 3)
{
    ModelShape shape;
    shape.architecture = Architecture::Classifier;
    shape.layers = 2;
    shape.hidden = shape.headSize = 6;
    shape.heads = shape.keyValueHeads = 1;
    shape.ffn = 10;
    shape.vocabulary = classes;
    shape.sequence = 4;
    shape.features = 300;
    shape.microbatchSize = 3;
    return shape;
}

ChunkData someChunks(const ModelShape& shape)
{
    std::vector<ChunkData::Kind> kinds{{"words", ""}, {"digits", ""}, {"zeros", ""}};
    for (int i = 0; i < 60; ++i) {
        kinds[0].bytes += "one two three ";
        kinds[1].bytes += std::to_string(i * i * 7919);
        kinds[2].bytes += std::string(5, '\0');
    }
    return ChunkData::fromKinds(kinds, "test", shape, 3);
}

} // namespace

class TestClassifier : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void kindsAreTheEndingsWithTheMostBytes()
    {
        QTemporaryDir folder;
        const auto write = [&](const QString& name, int bytes, char value) {
            QDir(folder.path()).mkpath(QFileInfo(folder.filePath(name)).path());
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(QByteArray(bytes, value));
        };
        write("a/one.TXT", 400, 't');
        write("two.txt", 300, 'u');
        write("picture.png", 600, 'p');
        write("LICENSE", 500, 'l');
        write("few.md", 90, 'm');     // too few for chunks
        write("some.json", 200, 'j'); // enough, but others have more
        write(".hidden/big.bin", 5000, 'h');
        const ModelShape shape = tinyClassifier();
        const ChunkData data = ChunkData::fromFolder(folder.path().toStdString(), shape, 1);
        QCOMPARE(data.kinds().size(), std::size_t{3});
        QCOMPARE(data.kinds()[0].name, std::string("txt"));
        QCOMPARE(data.kinds()[0].bytes, std::string(400, 't') + std::string(300, 'u'));
        QCOMPARE(data.kinds()[1].name, std::string("png"));
        QCOMPARE(data.kinds()[2].name, std::string("plain"));
        QCOMPARE(data.part(shape, true, 1).kinds()[0].bytes.size(), std::size_t{70});
        QCOMPARE(data.part(shape, false, 1).kinds()[0].bytes.size(), std::size_t{630});
        QVERIFY_THROWS_EXCEPTION(Error, ChunkData::fromFolder(folder.path().toStdString(), tinyClassifier(5), 1));
        QVERIFY_THROWS_EXCEPTION(Error, ChunkData::fromFolder(folder.filePath("two.txt").toStdString(), shape, 1));

        std::vector<std::int32_t> inputs(size_t(shape.inputs())), targets(size_t(shape.tokens())), again(inputs),
            same(targets);
        data.sample(2, 5, inputs, targets);
        data.sample(2, 5, again, same);
        QVERIFY(inputs == again && targets == same);
        for (std::size_t row = 0; row < targets.size(); ++row)
            for (std::size_t i = 0; i < 8; ++i) {
                const std::int32_t feature = inputs[row * 8 + i];
                QVERIFY(i < 4 ? feature < 256 : feature >= 256 && feature < 300);
            }
    }

    void gradientsAreTheSlopesOfTheLoss()
    {
        const ModelShape shape = tinyClassifier();
        const Workload workload = workloadOf(shape);
        const StageMaths maths(workload, 0, 4, 1);
        std::vector<float> parameters(maths.parameters().count()), gradients(parameters.size());
        maths.parameters().initialise(parameters, 7);
        for (const Parameter& parameter : maths.parameters().parameters())
            if (parameter.isMatrix())
                for (float& value : parameter.in(std::span<float>(parameters)))
                    value *= 10; // far enough from 0 that every part matters
        const ChunkData data = someChunks(shape);
        std::vector<std::int32_t> inputs(size_t(shape.inputs())), targets(size_t(shape.tokens()));
        data.sample(0, 0, inputs, targets);
        StageRoom room(maths);
        const auto loss = [&] {
            float value = 0;
            maths.forward(parameters, {inputs, {}, targets, {&value, 1}}, room.memory(), {});
            return double(value);
        };
        loss();
        maths.backward(parameters, room.memory(), {}, {}, gradients);
        double largest = 0;
        int moved = 0;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const float before = parameters[i];
            parameters[i] = before + 0.01f;
            const double up = loss();
            parameters[i] = before - 0.01f;
            const double down = loss();
            parameters[i] = before;
            largest = std::max(largest, std::abs((up - down) / 0.02 - double(gradients[i])));
            moved += gradients[i] != 0;
        }
        QVERIFY2(largest < 2e-3, std::to_string(largest).c_str());
        QVERIFY(moved > 200);
    }

    void everyScheduleTrainsItAlike_data()
    {
        QTest::addColumn<QString>("family");
        for (const char* family : {"1f1b", "zb-h1", "chimera", "pipeoptim", "cdp-v2"})
            QTest::newRow(family) << QString(family);
    }
    void everyScheduleTrainsItAlike()
    {
        QFETCH(QString, family);
        DesignRequest request = requestFor(family.toStdString(), 2, 4);
        request.model = "byte-mlp";
        request.microbatchSize = 2;
        RunOptions options;
        options.steps = 2;
        const RunResult result = run(makeDesign(request), options);
        QCOMPARE(result.maths, std::string("training"));
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        if (result.gradients)
            QVERIFY(result.gradients->bitEqual);
        else
            QVERIFY(std::any_of(result.notes.begin(), result.notes.end(),
                                [](const Diagnostic& note) { return note.where == "weights"; }));
    }

    void itLearnsToTellKindsOfFilesApart()
    {
        DesignRequest request = requestFor("1f1b", 2, 2);
        request.model = "byte-mlp";
        ExperimentOptions options;
        options.updates = 60;
        options.optimizer = Optimizer::AdamW;
        options.learningRate = 0.003;
        const Experiment experiment = runExperiment({makeDesign(request)}, options);
        QCOMPARE(experiment.runs[1].bitEqual, std::optional(true));
        QVERIFY(experiment.runs[0].classifies);
        // Four kinds, each drawn equally often: guessing is right one time in four.
        QVERIFY2(experiment.runs[0].heldBackAccuracy > 0.5,
                 std::to_string(experiment.runs[0].heldBackAccuracy).c_str());
        QVERIFY(experiment.runs[0].finalLoss < experiment.runs[0].losses.front());
    }

    void shapesThatAClassifierCannotHaveAreRefused()
    {
        ModelShape shape = tinyClassifier();
        shape.features = 0;
        QVERIFY(hasErrors(checkShape(shape)));
        shape = tinyClassifier();
        shape.sequencePieces = 2;
        QVERIFY(hasErrors(checkShape(shape)));
        shape = tinyClassifier();
        shape.dropout = true;
        QVERIFY(!isRunnable(shape));
        QVERIFY(isRunnable(tinyClassifier()));
    }
};

PIPEWRIGHT_TEST(TestClassifier, QCoreApplication)
#include "tst_classifier.moc"
