// SPDX-License-Identifier: GPL-3.0-or-later
// The links of rings and between stages, against a look at every single hop.
#include "core/cluster/nodes.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

class RingsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aRingIsAsSlowAsTheSlowestHopOfAnyOfItsDevices()
    {
        for (const int ofNode : {1, 4, 6, 8})
            for (const int perSwitch : {0, 1, 3, 4}) {
                Cluster cluster;
                cluster.link = {"inside", 5'000, 3e11};
                cluster.nodes = {ofNode, 1000, ofNode, {"card", 15'000, 4e10}, perSwitch, 2};
                const auto kindOf = [&](int from, int to) {
                    if (from / ofNode == to / ofNode)
                        return 0;
                    return perSwitch > 0 && from / ofNode / perSwitch != to / ofNode / perSwitch ? 2 : 1;
                };
                const LinkSpec links[] = {cluster.link, {"card", 15'000, 4e10}, {"card", 15'000, 2e10}};
                for (const int t : {1, 2, 4, 6})
                    for (const int c : {1, 2, 3})
                        for (const int d : {1, 2, 4, 5})
                            for (const int p : {1, 3, 4}) {
                                const NodeLayout layout(cluster, {t, c, d, p});
                                int tensor = 0, context = 0, data = 0, gradient = 0; // the slowest kind of hop
                                for (int from = 0; from < t * c * d * p; ++from) {
                                    const int i = from % t, j = from / t % c, k = from / t / c % d;
                                    const auto worst = [&](int& kind, int to) {
                                        kind = std::max(kind, kindOf(from, to));
                                    };
                                    worst(tensor, from - i + (i + 1) % t);
                                    worst(context, from + ((j + 1) % c - j) * t);
                                    const int copy = from + ((k + 1) % d - k) * t * c;
                                    worst(data, copy);
                                    worst(gradient, j + 1 < c ? from + t : copy - j * t);
                                }
                                QCOMPARE(layout.tensorRing(), links[tensor]);
                                QCOMPARE(layout.contextRing(), links[context]);
                                QCOMPARE(layout.dataRing(d), links[data]);
                                QCOMPARE(layout.gradientRing(d), links[gradient]);
                                // Successive devices of a stage, and those that are so far apart.
                                const int stage = t * c * d;
                                for (int group = 1; group <= stage; ++group) {
                                    if (stage % group != 0)
                                        continue;
                                    int successive = 0, apart = 0;
                                    for (int from = 0; from < stage * p; ++from) {
                                        const int first = from / group * group, of = from % stage;
                                        successive =
                                            std::max(successive, kindOf(from, first + (from - first + 1) % group));
                                        apart = std::max(apart, kindOf(from, from - of + (of + group) % stage));
                                    }
                                    QCOMPARE(layout.stageRing(group), links[successive]);
                                    QCOMPARE(layout.stageRing(stage / group, group), links[apart]);
                                }
                                int next = 0; // between two stages
                                for (int i = 0; p > 1 && i < t * c * d; ++i)
                                    next = std::max(next, kindOf(i, i + t * c * d));
                                if (p > 1)
                                    QCOMPARE(layout.between(0, 1), links[next]);
                            }
            }
    }
};

PIPEWRIGHT_TEST(RingsTest, NoApplication)
#include "tst_rings.moc"
