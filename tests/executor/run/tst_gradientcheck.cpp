// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/gradientcheck.h"

#include "executor/run/run.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <nlohmann/json.hpp>

#include <atomic>
#include <limits>

using namespace pipewright;

class TestGradientCheck : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// Elements that cancel to nearly nothing have no digit in common with the reference's, and need none.
    void anElementThatIsNearlyZeroIsWeighedByItsTensor()
    {
        GradientCheck check{.bitEqual = true, .within = fp32GradientBound};
        addTensor(check, "a", std::vector{3.0f, 4.0f, 1e-7f}, std::vector{3.0f, 4.0f, 1e-30f});
        QVERIFY(!check.bitEqual);
        QVERIFY2(std::abs(check.maxRelativeError - 2e-8) < 1e-10, std::to_string(check.maxRelativeError).c_str());
        QVERIFY(check.holds());
        QCOMPARE(check.worst, std::string("a"));
    }

    /// The key is never without a value: a run that compared nothing says why.
    void whatIsNotComparedSaysWhy_data()
    {
        QTest::addColumn<bool>("timed");
        QTest::addColumn<bool>("cancelled");
        QTest::addColumn<QString>("why");
        QTest::newRow("timed") << true << false << "have no mathematics";
        QTest::newRow("cancelled") << false << true << "was cancelled";
        QTest::newRow("unchecked") << false << false << "was not asked for";
    }
    void whatIsNotComparedSaysWhy()
    {
        QFETCH(bool, timed);
        QFETCH(bool, cancelled);
        QFETCH(QString, why);
        std::atomic<bool> cancel{cancelled};
        RunOptions options;
        options.checkGradients = cancelled;
        options.runtime.cancel = &cancel;
        if (timed)
            options.maths = RunOptions::Maths::Timed;
        const RunResult result = run(test::tinyGpt("1f1b", 2, 2), options);
        const nlohmann::json check = nlohmann::json::parse(result.toJson())["gradient_check"];
        QCOMPARE(check["reference"].get<std::string>(), std::string("sequential"));
        QVERIFY(QString::fromStdString(check["skipped"].get<std::string>()).contains(why));
        QVERIFY(!check.contains("bit_equal"));
    }

    /// A small tensor does not hide behind a large one.
    void theWorstTensorCounts()
    {
        GradientCheck check{.bitEqual = true, .within = fp32GradientBound};
        addTensor(check, "large", std::vector{1000.0f, 1000.001f}, std::vector{1000.0f, 1000.0f});
        addTensor(check, "small", std::vector{0.0011f}, std::vector{0.001f});
        addTensor(check, "same", std::vector{5.0f}, std::vector{5.0f});
        QVERIFY(std::abs(check.maxRelativeError - 0.1) < 1e-3);
        QCOMPARE(check.worst, std::string("small"));
        QVERIFY(!check.holds());
    }

    void whatCannotBeComparedIsAsWrongAsCanBe_data()
    {
        QTest::addColumn<std::vector<float>>("ours");
        QTest::addColumn<std::vector<float>>("theirs");
        const float nan = std::numeric_limits<float>::quiet_NaN();
        QTest::newRow("NaN") << std::vector{1.0f, nan} << std::vector{1.0f, 2.0f};
        QTest::newRow("zeros expected") << std::vector{1e-20f} << std::vector{0.0f};
        QTest::newRow("another size") << std::vector{1.0f} << std::vector{1.0f, 2.0f};
    }
    void whatCannotBeComparedIsAsWrongAsCanBe()
    {
        QFETCH(std::vector<float>, ours);
        QFETCH(std::vector<float>, theirs);
        GradientCheck check{.bitEqual = true, .within = bf16GradientBound};
        addTensor(check, "a", ours, theirs);
        QVERIFY(std::isinf(check.maxRelativeError));
        QVERIFY(!check.holds());
    }

    /// The reference follows a run's choices of experts, and tells those that rounding decided from wrong ones.
    void choicesOfExpertsAreFollowedAndJudged()
    {
        const kernels::Router router{4, 2};
        // Two tokens, of which the second's second and third expert are nearly alike.
        const std::vector<float> logits{2, 1, 0, -1, 2, 1.001f, 1, -1};
        std::vector<float> p, weight(4);
        std::vector<std::int32_t> choice(4), row(4), begin(5);
        RoutingCheck routing;
        const auto follow = [&](const std::vector<std::int32_t>& kept) {
            p = logits;
            const FollowingChoices following(kept, fp32GradientBound * 10, "stage 1, microbatch 3", routing);
            following.run(kernels::RouteTokens{router, {}, p, choice, row, weight, begin});
        };
        follow({0, 1, 1, 0}); // its own
        QCOMPARE(routing.otherwise, 0);
        QCOMPARE(choice, (std::vector<std::int32_t>{0, 1, 0, 1}));
        const float own = weight[3];
        follow({0, 1, 0, 2});
        QCOMPARE(choice, (std::vector<std::int32_t>{0, 1, 0, 2}));
        QVERIFY(weight[3] < own && weight[3] > own - 1e-3f); // of the third's probability
        QCOMPARE(p[1], std::exp(-1.0f) * p[0]);              // made of the logits once
        GradientCheck check{.within = fp32GradientBound};
        const auto said = [&] {
            check.routing = {routing.tokens, routing.otherwise, routing.unexplained, routing.first};
            Diagnostics notes;
            noteOfGradients(check, notes);
            return notes;
        };
        QVERIFY(said().size() == 1 && said()[0].severity == Severity::Note);
        QVERIFY2(said()[0].what.starts_with("1 of 4 choices"), said()[0].what.c_str());
        QVERIFY(check.holds());
        follow({0, 3, 0, 2});
        QCOMPARE(routing.tokens, 6);
        QCOMPARE(routing.otherwise, 3);
        QCOMPARE(routing.unexplained, 1);
        QVERIFY(said().size() == 1 && said()[0].severity == Severity::Error);
        QCOMPARE(said()[0].where, std::string("stage 1, microbatch 3, token 0"));
        QVERIFY(!check.holds());
        QVERIFY_THROWS_EXCEPTION(Error, follow({0, 1}));
        follow({0, 4, -1, 1}); // experts that there are not are judged, and reach nothing
        QCOMPARE(routing.unexplained, 3);
        QCOMPARE(choice, (std::vector<std::int32_t>{0, 1, 0, 1}));
    }

    void zerosOfTwoSignsAreNoError()
    {
        GradientCheck check{.bitEqual = true, .within = fp32GradientBound};
        addTensor(check, "a", std::vector{-0.0f}, std::vector{0.0f});
        QVERIFY(!check.bitEqual && check.maxRelativeError == 0 && check.holds());
    }
};

PIPEWRIGHT_TEST(TestGradientCheck, QCoreApplication)
#include "tst_gradientcheck.moc"
