// SPDX-License-Identifier: GPL-3.0-or-later
// The list of a search under way, against all plans at once.
#include "gui/plan/foundplans.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <random>
#include <tuple>

using namespace pipewright;

class TestFoundPlans : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsKeptIsTheBestAndTheFrontierInWhateverOrderTheyCome()
    {
        std::mt19937 random(7);
        std::uniform_int_distribution<int> number(1, 60);
        for (int round = 0; round < 50; ++round) {
            FoundPlans found;
            found.clear(4);
            std::vector<PlanFound> all;
            for (int batch = 0; batch < 12; ++batch) {
                std::vector<PlanFound> plans(static_cast<std::size_t>(batch % 4));
                for (PlanFound& plan : plans) {
                    plan.step = number(random);
                    plan.peak = number(random);
                }
                all.insert(all.end(), plans.begin(), plans.end());
                found.add(plans);
            }
            const auto beats = [](const PlanFound& a, const PlanFound& b) {
                return a.step <= b.step && a.peak <= b.peak && (a.step < b.step || a.peak < b.peak);
            };
            for (std::size_t i = 0; i < found.plans().size(); ++i) {
                const PlanFound& plan = found.plans()[i];
                QVERIFY(i == 0 || found.plans()[i - 1].step <= plan.step);
                const bool isBeaten =
                    std::any_of(all.begin(), all.end(), [&](const PlanFound& other) { return beats(other, plan); });
                if (found.onFrontier()[i])
                    QVERIFY(!isBeaten);
                else
                    QVERIFY(i < 4);
            }
            for (const PlanFound& plan : all) {
                const auto before = std::count_if(all.begin(), all.end(), [&](const PlanFound& other) {
                    return std::tie(other.step, other.peak) < std::tie(plan.step, plan.peak);
                });
                const bool isBeaten =
                    std::any_of(all.begin(), all.end(), [&](const PlanFound& other) { return beats(other, plan); });
                const bool isKept = std::any_of(found.plans().begin(), found.plans().end(), [&](const PlanFound& kept) {
                    return kept.step == plan.step && kept.peak == plan.peak;
                });
                QVERIFY(isKept || (isBeaten && before >= 4));
            }
        }
    }
};

PIPEWRIGHT_TEST(TestFoundPlans, QCoreApplication)
#include "tst_foundplans.moc"
