// SPDX-License-Identifier: GPL-3.0-or-later
// What PyTorch's ranks are told: the order of blocks and transfers, and what their backwards recompute.
#include "executor/torch/torchjob.h"
#include "testmain.h"
#include "twotorchranks.h"

#include <QTest>

#include <nlohmann/json.hpp>

using namespace pipewright;
using namespace pipewright::test;

class TestTorchJob : public QObject {
    Q_OBJECT

private slots:
    void theJobHoldsTheOrderOfBlocksAndTransfers()
    {
        Diagnostics notes;
        TorchOptions options;
        options.syntheticStages = true;
        const nlohmann::json job = nlohmann::json::parse(torchJob(twoStages(), options, notes));
        const std::string order = job["orders"]["pytorch-comms-csv"];
        compare(order, "0F0,0SEND_F0,");
        compare(order, "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0");
        QCOMPARE(job["device_of_stage"].get<std::vector<int>>(), (std::vector<int>{0, 1}));
        QCOMPARE(job["synthetic"][1]["W"].get<int>(), 6'000'000);
        QVERIFY(!job["check_gradients"].get<bool>()); // there is no mathematics to compare
    }

    void whatTheBackwardRecomputesIsPartOfTheJob()
    {
        DesignRequest request = requestFor("1f1b", 2, 2);
        request.model = "byte-gpt-small";
        const auto jobOf = [&](const char* recompute) {
            request.recompute = parseRecompute(recompute, "--recompute");
            Diagnostics notes;
            TorchOptions options;
            options.module = "model.py:build";
            const nlohmann::json job = nlohmann::json::parse(torchJob(makeDesign(request), options, notes));
            for (const Diagnostic& note : notes)
                QTest::qVerify(note.severity == Severity::Note, "", note.what.c_str(), __FILE__, __LINE__);
            return job["recompute"];
        };
        QVERIFY(jobOf("none").is_null());
        const nlohmann::json some = jobOf("every:2:1");
        QVERIFY(some["layers_together"] == nlohmann::json({0, 2}));
        const int layers = static_cast<int>(makeDesign(request).workload->layers.size());
        QVERIFY(some["kept_layers"] == nlohmann::json({0, layers - 1})); // embedding and head, as in every framework
        request.model.reset(); // the built-in one, which says nothing of the module
        QVERIFY(jobOf("full")["kept_layers"].empty());
    }

    void waysToRecomputeThatPytorchDoesNotHaveAreRefused()
    {
        const FakePython python("touch \"$HERE/started\"\n");
        DesignRequest request = requestFor("1f1b", 2, 2);
        request.model = "byte-gpt-small";
        request.recompute = parseRecompute("block", "--recompute");
        compare(faultOf(makeDesign(request), optionsFor(python)),
                "device 0, R0.0: error: PyTorch's schedules have no block");
        request.recompute = parseRecompute("selective", "--recompute");
        const Design selective = makeDesign(request);
        compare(faultOf(selective, optionsFor(python)), "which of your module's operations are its attention");
        TorchOptions synthetic;
        synthetic.syntheticStages = true; // their times are the design's
        requirePossible(selective, synthetic);
        request.family = "zb-h1";
        request.recompute = parseRecompute("full", "--recompute");
        const Design halves = makeDesign(request);
        compare(notesForTorch(halves, {}).front().what, "I runs the whole backward and W has nothing to do");
        QVERIFY(notesForTorch(halves, synthetic).empty());
        QVERIFY(!python.wrote("started"));
    }
};

PIPEWRIGHT_TEST(TestTorchJob, QCoreApplication)
#include "tst_torchjob.moc"
