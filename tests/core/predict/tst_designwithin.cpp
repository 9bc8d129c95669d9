// SPDX-License-Identifier: GPL-3.0-or-later
// Families that search under a limit in bytes of all that a device holds.
#include "core/predict/designwithin.h"

#include "core/predict/predict.h"
#include "errorof.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

constexpr Bytes gib = Bytes{1} << 30;

DesignRequest llama(const char* family)
{
    DesignRequest request = test::requestFor(family, 8, 16);
    request.model = "llama-3-8b";
    request.cluster = "h200-node";
    return request;
}

Bytes fullest(const Design& design)
{
    Bytes most = 0;
    for (const DeviceMetrics& device : predict(design).metrics.devices)
        most = std::max(most, device.peakBytes);
    return most;
}

} // namespace

class DesignWithinTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyDeviceStaysUnderTheLimit_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("limit");
        for (const char* family : {"zb-auto", "zb-v", "v-auto"})
            for (const int limit : {60, 72, 80, 100})
                if (family != std::string_view("zb-v") || limit >= 80) // it needs the memory of 1F1B
                    QTest::addRow("%s in %d GiB", family, limit) << family << limit;
    }

    void everyDeviceStaysUnderTheLimit()
    {
        QFETCH(QString, family);
        QFETCH(int, limit);
        const Design design = makeDesignWithin(llama(family.toUtf8().constData()), limit * gib);
        QVERIFY2(fullest(design) <= limit * gib, qPrintable(QString::number(double(fullest(design)) / double(gib))));
        QVERIFY(fullest(design) > (limit - 18) * gib || limit == 100); // what there is is used
    }

    void moreMemoryIsNoSlower()
    {
        const auto makespan = [](int limit) {
            return predict(makeDesignWithin(llama("zb-auto"), limit * gib)).metrics.makespan;
        };
        QVERIFY(makespan(80) < makespan(60) && makespan(60) < makespan(45));
    }

    void recomputationCountsAsWhatItKeeps()
    {
        DesignRequest request = llama("zb-auto");
        request.microbatches = 8;
        QVERIFY(test::errorOf([&] { makeDesignWithin(request, 31 * gib); }).find("--memory-limit") == 0);
        request.recompute = parseRecompute("full", "--recompute");
        const Design design = makeDesignWithin(request, 38 * gib);
        QVERIFY(fullest(design) <= 38 * gib);
        QVERIFY(predict(design).metrics.devices[1].peakActivations >= 1);
    }

    void replicasAndGivenBytesKeepWithinTheLimitToo()
    {
        DesignRequest request = llama("zb-auto");
        request.replicas = 2;
        const Design copies = makeDesignWithin(request, 120 * gib);
        QVERIFY(fullest(copies) <= 120 * gib);
        DesignRequest given = test::requestFor("v-auto", 4, 8);
        given.saved = gib;
        given.savedForWeightGrad = gib / 2;
        QVERIFY(fullest(makeDesignWithin(given, 3 * gib)) <= 3 * gib);
    }

    void whereNoneFitsTheReasonIsSaid()
    {
        const auto why = [](const char* family, Bytes limit) {
            return test::errorOf([&] { makeDesignWithin(llama(family), limit); });
        };
        QVERIFY(why("zb-auto", 20 * gib).find("device 0 holds 23.4 GiB of weights") != std::string::npos);
        QVERIFY(why("zb-v", 50 * gib).find("no schedule of zb-v keeps every device within 50GiB") != std::string::npos);
        QVERIFY(why("v-auto", 30 * gib).find("no schedule of v-auto keeps every device within 30GiB")
                != std::string::npos);
        QVERIFY(why("1f1b", 80 * gib).find("changes nothing of 1F1B") != std::string::npos);
        DesignRequest groups = test::requestFor("zb-auto", 2, 4);
        groups.cluster = "host-mixed";
        QVERIFY(test::errorOf([&] { makeDesignWithin(groups, 80 * gib); }).find("--memory-limit") == 0);
    }
};

PIPEWRIGHT_TEST(DesignWithinTest, NoApplication)
#include "tst_designwithin.moc"
