// SPDX-License-Identifier: GPL-3.0-or-later
// Design files: every design reads back equal, faults name their line, damaged files never crash the reader.
#include "core/base/diagnostic.h"
#include "core/design/stagecosts.h"
#include "core/files/designfile.h"
#include "core/files/locateddesign.h"
#include "core/model/transformer.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include "designtexts.h"

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

#include <rapidcheck.h>

#include <algorithm>
#include <fstream>
#include <random>

#include <sys/stat.h>

using namespace pipewright;
using namespace pipewright::test;

namespace {

const char* const small = R"({
  "pipewright": 1,
  "name": "two stages",
  "schedule": {
    "family": "1f1b",
    "microbatches": 1,
    "placement": [0, 1],
    "backward": "full",
    "order": [
      ["F0.0", "B0.0"],
      ["F1.0", "B1.0"]
    ]
  },
  "costs": {
    "source": "given",
    "link": {"latency": "1us", "bytes_per_second": 0},
    "stages": [
      {"forward": "1ms", "input_grad": "1ms", "weight_grad": "1ms"},
      {"forward": "2ms", "input_grad": "1ms", "weight_grad": "1ms", "output": "1MiB"}
    ]
  }
}
)";

Design trainableDesign()
{
    Design design;
    design.name = "byte-gpt · 2 stages";
    design.workload = makeWorkload(ModelShape{}, Optimizer::AdamW, "preset byte-gpt");
    design.layersPerStage = {5, 5};
    design.cluster.name = "host";
    design.cluster.devices.assign(2, DeviceSpec{"CPU thread", 0, 60e9, 10e9, 0.5});
    design.cluster.link = {"host memory", 5'000, 10e9};
    design.schedule.family = "gpipe";
    design.schedule.microbatches = 2;
    design.schedule.deviceOfStage = {0, 1};
    for (int device = 0; device < 2; ++device)
        design.schedule.order.push_back(
            {{Op::F, device, 0, 0}, {Op::F, device, 1, 0}, {Op::B, device, 0, 0}, {Op::B, device, 1, 0}});
    design.costs = formulaCosts(*design.workload, design.layersPerStage, design.cluster, design.schedule.deviceOfStage,
                                &design.dataflow);
    return design;
}

// Any design that the file format can carry, sensible or not.
rc::Gen<Design> arbitraryDesign()
{
    return rc::gen::exec([] {
        const auto upTo = [](std::int64_t high) { return *rc::gen::inRange<std::int64_t>(0, high + 1); };
        const auto text = [] {
            return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("az \"\\/\n\t~%09")));
        };
        const auto rate = [&upTo] { return static_cast<double>(upTo(1'000'000'000'000)) * (upTo(1) ? 1.0 : 0.3); };
        const auto time = [&upTo] { return upTo(1) ? upTo(1'000'000'000'000) : upTo(2'000'000); };
        Design design;
        design.name = text();
        const int stages = static_cast<int>(upTo(4)) + 1, devices = static_cast<int>(upTo(3)) + 1;
        design.schedule.family = text();
        design.schedule.microbatches = static_cast<int>(upTo(maxMicrobatches - 1)) + 1;
        design.schedule.backward = upTo(1) ? BackwardStyle::Full : BackwardStyle::Split;
        design.schedule.firstStageMaySplit = upTo(1) != 0;
        const auto block = [&] {
            return Block{static_cast<Op>(upTo(5)), static_cast<int>(upTo(stages - 1)), static_cast<int>(upTo(70'000)),
                         static_cast<int>(upTo(2))};
        };
        for (int stage = 0; stage < stages; ++stage)
            design.schedule.deviceOfStage.push_back(static_cast<int>(upTo(devices - 1)));
        for (int device = 0; device < devices; ++device) {
            auto& line = design.schedule.order.emplace_back();
            for (std::int64_t i = upTo(6); i > 0; --i)
                line.push_back(block());
        }
        for (std::int64_t i = upTo(2); i > 0; --i)
            design.schedule.pins.push_back({block(), time()});
        for (auto& line : design.schedule.order)
            for (std::size_t i = 0; i + 1 < line.size(); i += 2)
                if (upTo(3) == 0
                    && std::find(line.begin(), line.end(), line[i]) == line.begin() + static_cast<std::ptrdiff_t>(i))
                    design.schedule.overlaps.push_back({line[i], line[i + 1]});
        std::sort(design.schedule.overlaps.begin(), design.schedule.overlaps.end());
        dropBrokenOverlaps(design.schedule);
        if (upTo(1))
            design.schedule.replicaPlacements.assign(static_cast<std::size_t>(upTo(2)), design.schedule.deviceOfStage);
        design.schedule.sequencePieces = static_cast<int>(upTo(4)) + 1;
        if (upTo(1)) {
            ModelShape shape;
            shape.name = text();
            shape.layers = static_cast<int>(upTo(20)) + stages;
            shape.hidden = 64 * (upTo(8) + 1);
            shape.keyValueHeads = upTo(1) ? 4 : 2;
            shape.headSize = 16 * (upTo(8) + 1);
            shape.gatedMlp = upTo(1) != 0;
            shape.dropout = upTo(1) != 0;
            shape.tiedHead = upTo(1) != 0;
            shape.architecture = static_cast<Architecture>(upTo(1));
            shape.dataType = upTo(1) ? DataType::Bf16 : DataType::Fp32;
            shape.attention = upTo(1) ? AttentionMemory::Recomputed : AttentionMemory::Stored;
            if (upTo(1)) {
                shape.experts = 8;
                shape.expertsPerToken = 2;
                shape.expertFfn = 256;
                shape.routerBias = upTo(1) != 0;
            }
            shape.framework = frameworks[static_cast<std::size_t>(upTo(std::ssize(frameworks) - 1))].keeps;
            shape.framework.buffers += upTo(1);
            shape.framework.narrowGradients = upTo(1) != 0;
            design.workload = makeWorkload(shape, upTo(1) ? Optimizer::AdamW : Optimizer::SgdMomentum, text());
            if (upTo(1))
                design.workload->state.optimizer = 6;
            design.layersPerStage = evenPartition(*design.workload, stages);
        }
        const auto link = [&] { return LinkSpec{text(), time(), rate(), upTo(1) ? text() : ""}; };
        if (upTo(1)) {
            design.cluster.name = text();
            for (std::int64_t i = upTo(3); i > 0; --i)
                design.cluster.devices.push_back(
                    {text(), upTo(std::int64_t(1) << 40), rate(), rate(), 0.1 * static_cast<double>(upTo(10))});
            design.cluster.link = link();
            if (upTo(1))
                design.cluster.linkOfPair[{0, 1}] = link();
        }
        design.costs.source = text();
        design.costs.reduce = time();
        design.costs.link = {time(), rate(), {}};
        if (upTo(1))
            design.costs.linkOfPair[{1, 0}] = {time(), rate(), text(), static_cast<CostOrigin>(upTo(4))};
        if (upTo(1)) {
            design.costs.nodeLinks.nodes = {{0, {time(), rate(), text()}, {time(), rate(), text()}},
                                            {static_cast<int>(upTo(3)), {time(), rate()}, {}}};
            for (int device = 0; device < devices; ++device)
                design.costs.nodeLinks.nodeOfDevice.push_back(static_cast<int>(upTo(1)));
        }
        design.costs.communication = static_cast<Communication>(upTo(2));
        design.costs.overlapFactor = 0.25 * static_cast<double>(upTo(8));
        for (std::int64_t i = upTo(devices); i > 0; --i)
            for (HostGaps& gaps = design.costs.hostGaps.emplace_back(); const Op op : allOps) {
                gaps.before[indexOf(op)] = time();
                gaps.origin[indexOf(op)] = static_cast<CostOrigin>(upTo(4));
            }
        for (std::int64_t i = upTo(3); i > 0; --i)
            design.costs.microbatches.push_back(
                {0.125 * static_cast<double>(upTo(80)), 0.125 * static_cast<double>(upTo(80))});
        for (int stage = 0; stage < stages; ++stage) {
            StageCosts costs;
            for (const Op op : allOps)
                costs.*timeField(op) = time();
            if (upTo(1))
                costs.backward = costs.inputGrad + costs.weightGrad;
            forEachByteField(costs, [&](std::string_view, Bytes& field) { field = upTo(std::int64_t(1) << 50); });
            for (CostOrigin& origin : costs.origin)
                origin = static_cast<CostOrigin>(upTo(4));
            for (const Op op : allOps) {
                std::vector<BlockPart>& parts = costs.parts[indexOf(op)];
                for (std::int64_t i = isPass(op) ? upTo(4) - 2 : 0; i > 0; --i)
                    parts.push_back({text(), time(), static_cast<PartStream>(upTo(1)), upTo(1) != 0});
                if (!parts.empty())
                    costs.*timeField(op) = sumOf(parts);
            }
            design.costs.stages.push_back(costs);
        }
        for (const Overlap& pair : design.schedule.overlaps)
            if (upTo(1)) {
                PartSequence sequence;
                for (std::int64_t i = upTo(5); i >= 0; --i)
                    sequence.push_back(upTo(1) != 0);
                statePartOrder(design.schedule, pair, sequence);
            }
        const auto anyStage = [&] { return static_cast<int>(upTo(stages - 1)); };
        if (upTo(1))
            design.dataflow.skips.push_back({anyStage(), anyStage(), upTo(1'000'000)});
        if (upTo(1))
            design.dataflow.shared.push_back({anyStage(), anyStage(), upTo(1'000'000), upTo(1) != 0});
        return design;
    });
}

} // namespace

class TestDesignFile : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { qputenv("RC_PARAMS", "seed=20241214 verbose_progress=0"); }

    void everyDesignReadsBackEqual()
    {
        QVERIFY(rc::check("round trip", [] {
            const Design design = *arbitraryDesign();
            const std::string text = designToJson(design);
            const Design again = designFromJson(text, "design.json");
            RC_ASSERT(again.schedule == design.schedule);
            RC_ASSERT(again.costs == design.costs);
            RC_ASSERT(again.cluster == design.cluster);
            RC_ASSERT(again.workload == design.workload);
            RC_ASSERT(again == design);
            RC_ASSERT(designToJson(again) == text);
        }));
    }

    void aTrainableDesignReadsBackEqualAndIsPleasantToRead()
    {
        const Design design = trainableDesign();
        const std::string text = designToJson(design);
        QVERIFY(designFromJson(text, "x") == design);
        QVERIFY(text.find("\n      [\"F0.0\", \"F0.1\", \"B0.0\", \"B0.1\"],\n") != std::string::npos);
        QVERIFY(text.find("\"latency\": \"5us\"") != std::string::npos);
        QVERIFY(text.starts_with("{\n  \"pipewright\": 2,\n"));
    }

    void theSmallestUsefulFileIsReadWithDefaults()
    {
        const Design design = designFromJson(small, "design.json");
        QCOMPARE(design.name, std::string("two stages"));
        QVERIFY(design.schedule.order[1][0] == (Block{Op::F, 1, 0, 0}));
        QCOMPARE(design.costs.stages[0].backward, Nanoseconds(2'000'000));
        QCOMPARE(design.costs.stages[1].output, Bytes(1) << 20);
        QCOMPARE(design.costs.link.latency, Nanoseconds(1'000));
        QVERIFY(!design.workload);
    }

    void howTransfersRunIsReadAndWritten()
    {
        Design design = trainableDesign();
        QVERIFY(designToJson(design).find("communication") == std::string::npos); // as families have it
        for (const char* name : {"overlapped", "one-stream", "blocking"}) {
            const std::string text = replaced(designToJson(trainableDesign()), "\"costs\": {",
                                              "\"costs\": {\"communication\": \"" + std::string(name) + "\", ");
            design = designFromJson(text, "design.json");
            QCOMPARE(std::string(nameOf(design.costs.communication)), std::string(name));
            QVERIFY(designFromJson(designToJson(design), "again.json") == design);
        }
        // The older key is the one that is written, so that older programs read what they know.
        QVERIFY(designToJson(design).find("\"blocking_transfers\": true") != std::string::npos);
    }

    void everyFaultNamesItsLine_data()
    {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const char* from, const char* to, const char* expected) {
            QTest::newRow(name) << QString(from) << QString(to) << QString(expected);
        };
        row("wrong JSON", "\"backward\": \"full\",", "\"backward\": \"full\"",
            "design.json:9: error: not valid JSON: syntax error");
        row("unquoted value", "\"full\"", "full", "design.json:8: error: not valid JSON");
        row("short replica", "\"backward\": \"full\",", "\"backward\": \"full\", \"replica_placements\": [[0]],",
            "design.json:8: error: 1 stages are placed, \"placement\" has 2");
        row("replica nowhere", "\"backward\": \"full\",", "\"backward\": \"full\", \"replica_placements\": [[0, 7]],",
            "design.json:8: error: stage 1 is placed on device 7, but \"order\" has 2 devices");
        row("replica of another kind", "\"backward\": \"full\",",
            "\"backward\": \"full\", \"replica_placements\": [3],", "design.json:8: error: this is not a placement");
        row("half a pair", "\"F0.0\", \"B0.0\"", "\"F0.0&\", \"B0.0\"",
            "design.json:10: error: device 0, position 0: \"F0.0&\" is not a block");
        row("unknown key", "\"placement\"", "\"placment\"",
            "design.json:7: error: unknown key \"placment\" (did you mean \"placement\"?)");
        row("unknown origin", "\"latency\": \"1us\"", "\"latency\": \"1us\", \"origin\": \"guessed\"", "guessed");
        row("origin of an unknown time", "\"output\": \"1MiB\"", "\"origin\": {\"forwards\": \"given\"}", "forwards");
        row("unknown key at the top", "\"name\"", "\"nam\"",
            "design.json:3: error: unknown key \"nam\" (did you mean \"name\"?)");
        row("missing key", "    \"microbatches\": 1,\n", "",
            "design.json:4: error: the key \"microbatches\" is missing");
        row("doubled key", "\"family\": \"1f1b\",", "\"family\": \"1f1b\",\n    \"family\": \"x\",",
            "design.json:6: error: the key \"family\" stands twice");
        row("wrong type", "\"microbatches\": 1", "\"microbatches\": \"1\"",
            "design.json:6: error: \"microbatches\" is a text (expected a whole number)");
        row("a number with fraction", "\"microbatches\": 1", "\"microbatches\": 1.5",
            "design.json:6: error: \"microbatches\" is a number (expected a whole number)");
        row("no microbatches", "\"microbatches\": 1", "\"microbatches\": 0",
            "design.json:6: error: \"microbatches\" is 0, out of range (between 1 and 65536)");
        row("too many microbatches", "\"microbatches\": 1", "\"microbatches\": 65537",
            "design.json:6: error: \"microbatches\" is 65537, out of range");
        row("beyond 64 bits", "\"microbatches\": 1", "\"microbatches\": 18446744073709551615",
            "design.json:6: error: \"microbatches\" is 18446744073709551615, out of range");
        row("negative time", "\"forward\": \"1ms\"", "\"forward\": \"-1ms\"",
            "design.json:18: error: \"forward\": a duration cannot be negative");
        row("time without unit", "\"forward\": \"2ms\"", "\"forward\": \"2\"",
            "design.json:19: error: \"forward\": the duration \"2\" has no unit");
        row("time as a number", "\"forward\": \"2ms\"", "\"forward\": 2",
            "design.json:19: error: \"forward\" is a number (expected a duration");
        row("bad size", "\"1MiB\"", "\"1Mib\"", "design.json:19: error: \"output\": \"Mib\" is not a unit of a size");
        row("negative rate", "\"bytes_per_second\": 0", "\"bytes_per_second\": -1",
            "design.json:16: error: \"bytes_per_second\" is -1");
        row("a device on no node", "\"bytes_per_second\": 0}",
            "\"bytes_per_second\": 0}, \"nodes\": {\"of_devices\": [0, 1], \"links\": [{\"under_switch\": 0}]}",
            "design.json:16: error: 1 is out of range");
        row("nodes without links", "\"bytes_per_second\": 0}",
            "\"bytes_per_second\": 0}, \"nodes\": {\"of_devices\": [0, 0]}",
            "design.json:16: error: the key \"links\" is missing");
        row("unparsable block", "\"F1.0\"", "\"F1-0\"",
            "design.json:11: error: device 1, position 0: \"F1-0\" is not a block");
        row("a block that is no text", "\"F1.0\"", "7",
            "design.json:11: error: device 1, position 0: 7 is not a block");
        const char* const pin = "[0, 1], \"pins\": [{\"block\": \"\", \"earliest_start\": \"1us\"}]";
        row("a pin of nothing", "[0, 1]", pin, "design.json:7: error: this is not a block");
        const char* const pair = "[0, 1], \"part_orders\": [{\"pair\": \"\", \"order\": \"12\"}]";
        row("an order of nothing's parts", "[0, 1]", pair, "design.json:7: error: this is no overlapped pair");
        const char* const order = "[0, 1], \"transfer_order\": [{\"transfer\": \"\", \"before\": \"F0.1 to 1\"}]";
        row("an order of no transfer", "[0, 1]", order, "design.json:7: error: this is not a transfer");
        row("another way to communicate", "\"latency\": \"1us\", \"bytes_per_second\": 0}",
            "\"latency\": \"1us\", \"bytes_per_second\": 0}, \"communication\": \"two-streams\"", "\"two-streams\"");
        row("two ways to communicate", "\"latency\": \"1us\", \"bytes_per_second\": 0}",
            "\"latency\": \"1us\", \"bytes_per_second\": 0}, \"blocking_transfers\": true, "
            "\"communication\": \"one-stream\"",
            "it is one-stream, and \"blocking_transfers\" is true");
        row("stage out of range", "\"B0.0\"", "\"B2.0\"",
            "design.json:10: error: device 0, position 1: B2.0 is of stage 2, but there are 2 stages");
        row("order is no list", "[\"F1.0\", \"B1.0\"]", "\"F1.0\"",
            "design.json:11: error: the order of device 1 is not a list");
        row("placed nowhere", "[0, 1]", "[0, 2]",
            "design.json:7: error: stage 1 is placed on device 2, but \"order\" has 2 devices");
        row("negative device", "[0, 1]", "[0, -1]", "design.json:7: error: -1 is out of range");
        row("unknown version", "\"pipewright\": 1", "\"pipewright\": 0",
            "design.json:2: error: design version 0 is unknown (this program reads versions 1 to 2)");
        row("newer version", "\"pipewright\": 1", "\"pipewright\": 3",
            "design.json:2: error: a newer Pipewright wrote this file: design version 3 (this program reads version 2: "
            "update it, or save an older version where the file was made)");
        row("no design at all", "\"pipewright\": 1", "\"traceEvents\": 1",
            "design.json:1: error: this is not a Pipewright design");
        row("unknown name", "\"full\"", "\"halved\"",
            "design.json:8: error: \"backward\" cannot be \"halved\" (one of full, split)");
        row("stages without costs", "[0, 1]", "[0, 1, 1]",
            "design.json:17: error: costs of 2 stages are given, but 3 stages are placed");
        row("partition without model", "\"name\": \"two stages\",", "\"layers_per_stage\": [1, 1],",
            "design.json:3: error: the model's layers are cut into stages, but no model is given");
        row("partition that does not sum", "\"name\": \"two stages\",",
            "\"model\": {\"name\": \"m\", \"layers\": 8, \"hidden\": 8, \"heads\": 2, \"ffn\": 8, \"vocabulary\": 8, "
            "\"sequence\": 8, "
            "\"microbatch_size\": 1, \"data_type\": \"fp32\"},\n\"layers_per_stage\": [4, 5],",
            "design.json:4: error: the stages hold 9 layers, but the model has 10 (embedding and head count as one "
            "layer each)");
        row("impossible model", "\"name\": \"two stages\",",
            "\"model\": {\"name\": \"m\", \"layers\": 8, \"hidden\": 8, \"heads\": 2,\n\"ffn\": 99000000, "
            "\"vocabulary\": 8, \"sequence\": 8, "
            "\"microbatch_size\": 1, \"data_type\": \"fp32\"},",
            "design.json:4: error: model.ffn: 99000000 is out of range");
    }

    void everyFaultNamesItsLine()
    {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, expected);
        const QString fault = QString::fromStdString(faultOf(replaced(small, from.toStdString(), to.toStdString())));
        QVERIFY2(fault.contains(expected), qPrintable(fault));
    }

    void severalFaultsAreReportedAtOnce()
    {
        const std::string text =
            replaced(replaced(replaced(small, "\"1f1b\"", "3"), "\"F1.0\"", "\"x\""), "\"2ms\"", "\"2\"");
        try {
            designFromJson(text, "d");
            QFAIL("read");
        } catch (const Error& error) {
            QCOMPARE(error.diagnostics().size(), std::size_t(3));
        }
        // A file of ten thousand faults does not fill the screen.
        std::string many = "[\"F0.0\"";
        for (int i = 0; i < 10'000; ++i)
            many += ", \"x\"";
        try {
            designFromJson(replaced(small, "[\"F0.0\"", many), "d");
            QFAIL("read");
        } catch (const Error& error) {
            QCOMPARE(error.diagnostics().size(), std::size_t(32));
        }
    }

    void damagedFilesAreReadOrRefusedButNeverCrash()
    {
        Design design = trainableDesign();
        design.schedule.pins.push_back({{Op::F, 0, 0, 0}, 5});
        const std::string text = designToJson(design);
        for (std::size_t length = 0; length < text.size(); ++length) {
            const std::string fault = faultOf(text.substr(0, length));
            if (length + 1 < text.size()) // the last character is the final newline
                QVERIFY2(fault.find("design.json:") == 0, fault.c_str());
        }
        std::mt19937 random(7);
        for (int i = 0; i < 20'000; ++i) {
            std::string damaged = text;
            for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
                damaged[random() % damaged.size()] = static_cast<char>(random());
            const std::string fault = faultOf(damaged);
            QVERIFY2(fault.find("design.json:") == 0 || fault == "read without a fault", fault.c_str());
        }
        faultOf(std::string(1'000'000, '['));
        QVERIFY(faultOf(std::string(1'000'000, '[')).find("nested") != std::string::npos);
        QCOMPARE(faultOf(""), std::string("design.json: error: the file is empty"));
        QVERIFY(faultOf("null").find("not a Pipewright design") != std::string::npos);
        QVERIFY(faultOf(std::string("{\"pipewright\": 1, \"\xff\xfe\": 2}")).find("design.json:1: error") == 0);
    }

    void largeDesignsAreQuick()
    {
        Design design = designFromJson(small, "x");
        design.schedule.deviceOfStage.clear();
        design.schedule.order.clear();
        design.schedule.microbatches = 1'024;
        design.costs.stages.assign(64, StageCosts{});
        for (int stage = 0; stage < 64; ++stage) {
            design.schedule.deviceOfStage.push_back(stage);
            auto& line = design.schedule.order.emplace_back();
            for (int microbatch = 0; microbatch < 1'024; ++microbatch)
                for (const Op op : {Op::F, Op::I, Op::W})
                    line.push_back({op, stage, microbatch, 0});
        }
        QElapsedTimer timer;
        timer.start();
        const std::string text = designToJson(design);
        const qint64 written = timer.restart();
        const Design again = designFromJson(text, "x");
        qInfo("196,608 blocks: written in %lld ms, read in %lld ms", written, timer.elapsed());
        QVERIFY(again == design);
        QVERIFY2(std::count(text.begin(), text.end(), '\n') < 300, "a device's blocks are one line");
    }

    void linesOfDevicesPlaceWhatValidationFinds()
    {
        const LocatedDesign located = locatedDesignFromJson(small, "design.json");
        QCOMPARE(located.lineOfDevice, std::vector<int>({10, 11}));
        const Diagnostics placed =
            located.locate({{Severity::Error, "device 1, position 3 (B0.0)", "is wrong", "do this"},
                            {Severity::Error, "stage 1", "is odd", ""},
                            {Severity::Warning, "elsewhere", "hm", ""},
                            {Severity::Error, "device 9", "is unknown", ""}});
        QCOMPARE(toString(placed[0]),
                 std::string("design.json:11: error: device 1, position 3 (B0.0): is wrong (do this)"));
        QCOMPARE(toString(placed[1]), std::string("design.json:7: error: stage 1: is odd"));
        QCOMPARE(toString(placed[2]), std::string("design.json: warning: elsewhere: hm"));
        QCOMPARE(placed[3].where, std::string("design.json:4"));
    }

    void filesAreReplacedOnlyWhenAskedAndNeverHalfWritten()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath("design.json").toStdString();
        const Design design = trainableDesign();
        writeDesign(design, path, false);
        QVERIFY(readDesign(path) == design);
        QVERIFY_THROWS_EXCEPTION(Error, writeDesign(design, path, false));
        QCOMPARE(::chmod(path.c_str(), 0640), 0);
        Design other = design;
        other.name = "other";
        writeDesign(other, path, true);
        QCOMPARE(readDesign(path).name, std::string("other"));
        struct stat status {};
        QCOMPARE(::stat(path.c_str(), &status), 0);
        QCOMPARE(int(status.st_mode & 0777), 0640);

        const QString link = folder.filePath("link.json");
        QVERIFY(QFile::link(QString::fromStdString(path), link));
        writeDesign(design, link.toStdString(), true);
        QVERIFY(QFileInfo(link).isSymLink());
        QCOMPARE(readDesign(path).name, design.name);

        QVERIFY_THROWS_EXCEPTION(Error, writeDesign(design, folder.filePath("no/folder.json").toStdString(), false));
        QVERIFY_THROWS_EXCEPTION(Error, writeDesign(design, folder.path().toStdString(), true));
        QVERIFY_THROWS_EXCEPTION(Error, readDesign(folder.path().toStdString()));
        QVERIFY_THROWS_EXCEPTION(Error, readDesign(folder.filePath("absent.json").toStdString()));
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files | QDir::Hidden).size(), 2); // no temporary left behind
    }
};

PIPEWRIGHT_TEST(TestDesignFile, NoApplication)
#include "tst_designfile.moc"
