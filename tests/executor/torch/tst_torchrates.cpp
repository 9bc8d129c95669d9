// SPDX-License-Identifier: GPL-3.0-or-later
// Rates that PyTorch reports, with a program that speaks its protocol in the place of Python.
#include "core/base/diagnostic.h"
#include "errorof.h"
#include "executor/torch/torchrates.h"
#include "fakepython.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

const std::vector<RatedShape> askedShapes{{RatedOperation::Product, "TN", "bf16", {}, {64, 128, 256}},
                                          {RatedOperation::AllReduce, {}, {}, "wire", {2, 64}}};
const std::string greeting = "say '{\"hello\":0,\"device\":\"a GPU\",\"torch\":\"9.9\"}'\n";

TorchRates timesFrom(const FakePython& python)
{
    TorchRatesOptions options;
    options.python = python.program();
    return measureInTorch(askedShapes, options);
}

} // namespace

class TestTorchRates : public QObject {
    Q_OBJECT

private slots:
    void timesBelongToTheShapesThatWereAskedFor()
    {
        const FakePython python(greeting + R"(cp "$JOB" "$HERE/job.json"
say '{"shape":1,"left_out":"no collectives","fraction":0.5}'
say '{"shape":0,"seconds":0.25,"fraction":1.0}'
say '{"done":true}'
)");
        const TorchRates rates = timesFrom(python);
        QCOMPARE(rates.device, std::string("a GPU"));
        QCOMPARE(rates.tool, std::string("PyTorch 9.9"));
        QCOMPARE(rates.times.size(), std::size_t{1});
        QVERIFY(rates.times[0].shape == askedShapes[0] && rates.times[0].seconds == 0.25);
        QCOMPARE(rates.leftOut.size(), std::size_t{1});
        QCOMPARE(rates.leftOut[0].why, std::string("no collectives"));
        QFile job(QString::fromStdString(python.path("job.json")));
        QVERIFY(job.open(QIODevice::ReadOnly));
        QVERIFY(job.readAll().contains(R"({"operation":"product","layout":"TN","types":"bf16","dims":[64)"));
    }

    void anotherVersionsReportIsRefused()
    {
        const FakePython python(greeting + "say '{\"shape\":7,\"seconds\":1,\"fraction\":1}'\n");
        const std::string error = errorOf([&] { (void)timesFrom(python); });
        QVERIFY2(error.find("not asked for") != std::string::npos, error.c_str());
    }

    void whatThePackageRefusesIsSaid()
    {
        const FakePython python(
            "say '{\"failed\":\"PyTorch finds no GPU\",\"where\":\"--device\",\"hint\":\"host\"}'\n");
        const std::string error = errorOf([&] { (void)timesFrom(python); });
        QVERIFY2(error.find("finds no GPU") != std::string::npos, error.c_str());
    }
};

PIPEWRIGHT_TEST(TestTorchRates, QCoreApplication)
#include "tst_torchrates.moc"
