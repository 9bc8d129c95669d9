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

    void zerosOfTwoSignsAreNoError()
    {
        GradientCheck check{.bitEqual = true, .within = fp32GradientBound};
        addTensor(check, "a", std::vector{-0.0f}, std::vector{0.0f});
        QVERIFY(!check.bitEqual && check.maxRelativeError == 0 && check.holds());
    }
};

PIPEWRIGHT_TEST(TestGradientCheck, QCoreApplication)
#include "tst_gradientcheck.moc"
