// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of runs that others have published, as their frameworks recompute and share out states.
#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

namespace {

double fullestGigabytes(const Design& design)
{
    Bytes most = 0;
    for (const DeviceMetrics& device : predict(design).metrics.devices)
        most = std::max(most, device.peakBytes);
    return static_cast<double>(most) / 1e9;
}

} // namespace

class PublishedMemoryTest : public QObject {
    Q_OBJECT

private slots:
    /// BigScience's plans for 194 billion parameters on A100s of 80 GB ("chronicles-prequel" of tr11): tensor 8,
    /// pipeline 6, data 8, the optimizer's state shared out, every layer recomputed.
    void bigScience_data()
    {
        QTest::addColumn<int>("microbatch");
        QTest::addColumn<double>("gigabytes");
        QTest::newRow("1") << 1 << 39.0;
        QTest::newRow("2") << 2 << 45.0;
        QTest::newRow("4") << 4 << 56.0;
        QTest::newRow("8") << 8 << 75.0;
    }
    void bigScience()
    {
        QFETCH(int, microbatch);
        QFETCH(double, gigabytes);
        ModelShape shape;
        shape.name = "BigScience 194B";
        shape.layers = 78;
        shape.hidden = 14400;
        shape.heads = shape.keyValueHeads = 96;
        shape.headSize = 150;
        shape.ffn = 4 * shape.hidden;
        shape.vocabulary = 250880;
        shape.sequence = 2048;
        shape.microbatchSize = microbatch;
        shape.dataType = DataType::Bf16;
        shape.attention = AttentionMemory::Stored;
        shape.parallel.tensor = 8;
        shape.parallel.data = 8;
        NewDesign choice;
        choice.workload = makeWorkload(shape, Optimizer::AdamW, "published");
        choice.cluster = PresetLibrary().cluster("a100-nodes", 6, shape.parallel.devicesPerStage());
        choice.family = "1f1b";
        choice.devices = 6;
        choice.microbatches = 48;
        choice.zero.level = 1;
        const Design kept = designFromModel(choice);
        const auto gigabytesWith = [&](Recompute recompute) {
            return fullestGigabytes(withRecompute(kept, std::vector<Recompute>(6, recompute)));
        };
        const double predicted = gigabytesWith(Recompute::Full);
        QVERIFY2(std::abs(predicted / gigabytes - 1) < 0.05,
                 qPrintable(QString("%1 GB, %2 published").arg(predicted).arg(gigabytes)));
        // R blocks, which have all layers of a stage at once, would not have fit at 8.
        QCOMPARE(gigabytesWith(Recompute::Block) > 80, microbatch == 8);
    }
};

PIPEWRIGHT_TEST(PublishedMemoryTest, NoApplication)
#include "tst_publishedmemory.moc"
