// SPDX-License-Identifier: GPL-3.0-or-later
// Perfetto files read back by a reader of its own, which knows protobuf's wire format and nothing of the writer.
#include "core/design/designbuilder.h"
#include "core/exchange/blockscsv.h"
#include "core/exchange/chrometrace.h"
#include "core/exchange/perfetto.h"
#include "core/predict/predict.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

using namespace pipewright;

namespace {

struct Field {
    std::uint64_t number = 0, value = 0;
    std::string_view bytes; ///< of a nested message or text
};

std::uint64_t varint(std::string_view& bytes)
{
    std::uint64_t value = 0;
    for (int shift = 0; !bytes.empty() && shift < 64; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    return value;
}

std::vector<Field> fieldsOf(std::string_view bytes)
{
    std::vector<Field> fields;
    while (!bytes.empty()) {
        const std::uint64_t tag = varint(bytes);
        Field field;
        field.number = tag >> 3;
        switch (tag & 7) {
        case 0: field.value = varint(bytes); break;
        case 1:
            std::memcpy(&field.value, bytes.data(), 8);
            bytes.remove_prefix(8);
            break;
        case 2: {
            const std::uint64_t size = varint(bytes);
            field.bytes = bytes.substr(0, size);
            bytes.remove_prefix(size);
            break;
        }
        default: qFatal("a wire type that nobody writes");
        }
        fields.push_back(field);
    }
    return fields;
}

std::uint64_t numberIn(std::string_view message, std::uint64_t field, std::uint64_t otherwise = 0)
{
    for (const Field& f : fieldsOf(message))
        if (f.number == field)
            return f.value;
    return otherwise;
}

std::string textIn(std::string_view message, std::uint64_t field)
{
    for (const Field& f : fieldsOf(message))
        if (f.number == field)
            return std::string(f.bytes);
    return {};
}

struct ReadTrace {
    struct Slice {
        std::string track, name;
        std::uint64_t start = 0, end = 0;
        bool operator<(const Slice& o) const
        {
            return std::tie(track, start, end, name) < std::tie(o.track, o.start, o.end, o.name);
        }
    };
    std::multiset<Slice> slices;
    std::map<std::uint64_t, std::string> tracks; ///< "device 0 / predicted"
    std::map<std::string, std::vector<std::pair<std::uint64_t, std::uint64_t>>> counters;
    std::multimap<std::uint64_t, std::string> flowsFrom, flowsTo; ///< by id: name of the slice

    explicit ReadTrace(const std::string& bytes)
    {
        std::map<std::uint64_t, std::vector<Slice>> open;
        for (const Field& packet : fieldsOf(bytes)) {
            QCOMPARE(packet.number, std::uint64_t{1});
            QVERIFY(numberIn(packet.bytes, 10) != 0); // a sequence
            const std::string descriptor = textIn(packet.bytes, 60), event = textIn(packet.bytes, 11);
            if (!descriptor.empty()) {
                const std::uint64_t parent = numberIn(descriptor, 5);
                std::string name = textIn(descriptor, 2);
                if (const std::string process = textIn(descriptor, 3); !process.empty())
                    name = textIn(process, 6);
                QVERIFY(parent == 0 || tracks.contains(parent));
                tracks[numberIn(descriptor, 1)] = (parent != 0 ? tracks[parent] + " / " : "") + name;
                continue;
            }
            const std::uint64_t time = numberIn(packet.bytes, 8), track = numberIn(event, 11);
            QVERIFY(tracks.contains(track));
            switch (numberIn(event, 9)) {
            case 1: {
                Slice slice{tracks[track], textIn(event, 23), time, 0};
                for (const Field& f : fieldsOf(event)) {
                    if (f.number == 47)
                        flowsFrom.emplace(f.value, slice.name);
                    if (f.number == 48)
                        flowsTo.emplace(f.value, slice.name);
                }
                open[track].push_back(slice);
                break;
            }
            case 2: {
                QVERIFY(!open[track].empty());
                Slice slice = open[track].back();
                open[track].pop_back();
                slice.end = time;
                slices.insert(slice);
                break;
            }
            case 4: counters[tracks[track]].emplace_back(time, numberIn(event, 30)); break;
            default: QFAIL("an event of another type");
            }
        }
        for (const auto& [track, slices] : open)
            QVERIFY(slices.empty());
    }
};

} // namespace

class TestPerfetto : public QObject {
    Q_OBJECT

private:
    static Design designOf(const char* family)
    {
        DesignRequest request = test::requestFor(family, 4, 8);
        request.transfer = 1'500'000; // longer than a block, so transfers overlap
        return makeDesign(request);
    }

    static Timeline shifted(Timeline timeline)
    {
        for (auto* times : {&timeline.start, &timeline.end})
            for (Nanoseconds& time : *times)
                time = time * 2 + 7;
        timeline.start[3] = timeline.end[3] = notRun;
        return timeline;
    }

private Q_SLOTS:
    void whatIsWrittenIsReadBack_data()
    {
        QTest::addColumn<QString>("family");
        QTest::newRow("1f1b") << "1f1b";
        QTest::newRow("zb-v") << "zb-v";
        QTest::newRow("dualpipe-v") << "dualpipe-v";
    }

    void whatIsWrittenIsReadBack()
    {
        QFETCH(QString, family);
        const Prediction p = predict(designOf(family.toUtf8().constData()));
        const Timeline measured = shifted(p.timeline);
        const ReadTrace read(joined([&](const Pieces& to) { perfettoTrace(p.program, p.timeline, &measured, to); }));
        std::size_t expected = 0;
        for (const Timeline* timeline : {&p.timeline, &measured}) {
            const std::string side = timeline == &measured ? "measured" : "predicted";
            for (TaskId t = 0; t < p.program.tasks.size(); ++t) {
                if (timeline->start[t] == notRun)
                    continue;
                ++expected;
                const Task& task = p.program.tasks[t];
                const std::string device = "device " + std::to_string(task.recordedOn());
                const bool found = std::any_of(read.slices.begin(), read.slices.end(), [&](const ReadTrace::Slice& s) {
                    return s.name == p.program.label(t) && s.start == static_cast<std::uint64_t>(timeline->start[t])
                           && s.end == static_cast<std::uint64_t>(timeline->end[t])
                           && s.track.starts_with(device + " / " + side);
                });
                QVERIFY2(found, p.program.label(t).c_str());
            }
            for (std::size_t d = 0; d < timeline->memory.size(); ++d) {
                const auto& counter = read.counters.at("device " + std::to_string(d) + " / " + side + " memory");
                QCOMPARE(counter.size(), timeline->memory[d].size());
                for (std::size_t i = 0; i < counter.size(); ++i)
                    QCOMPARE(counter[i], std::pair(static_cast<std::uint64_t>(timeline->memory[d][i].time),
                                                   static_cast<std::uint64_t>(timeline->memory[d][i].bytes)));
            }
        }
        QCOMPARE(read.slices.size(), expected);
        // Every transfer of the prediction is an arrow from what makes its value and to what needs it.
        for (TaskId t = 0; t < p.program.tasks.size(); ++t)
            if (p.program.tasks[t].kind == TaskKind::Transfer) {
                std::set<std::string> from;
                const auto [first, last] = read.flowsFrom.equal_range(t + 1);
                for (auto i = first; i != last; ++i)
                    from.insert(i->second);
                QVERIFY(from.contains(p.program.label(p.program.afterData[t])));
                QVERIFY(from.contains(p.program.label(t)));
                QCOMPARE(read.flowsTo.count(t + 1), std::size_t{1});
            }
        // Slices of one track do not overlap.
        const ReadTrace::Slice* before = nullptr;
        for (const ReadTrace::Slice& slice : read.slices) {
            QVERIFY(!before || before->track != slice.track || before->end <= slice.start);
            before = &slice;
        }
    }

    void chromeHasPredictionAndMeasurementSideBySide()
    {
        const Prediction p = predict(designOf("1f1b"));
        const Timeline measured = shifted(p.timeline);
        const auto document = QJsonDocument::fromJson(QByteArray::fromStdString(
            joined([&](const Pieces& to) { chromeTrace(p.program, p.timeline, "both", &measured, to); })));
        // Everything in nanoseconds, by side (0 predicted, 1 measured); a device's processes are 4 apart.
        const auto nanoseconds = [](const QJsonValue& microseconds) {
            return std::llround(microseconds.toDouble() * 1000);
        };
        std::map<std::tuple<int, int, QString>, std::pair<qint64, qint64>> slices; ///< side, device, name: start, end
        std::map<int, std::map<QString, std::pair<int, qint64>>> flows;            ///< id: phase: process, time
        std::map<std::pair<int, int>, std::vector<std::pair<qint64, qint64>>> counters;
        int names = 0;
        for (const auto& value : document.object()["traceEvents"].toArray()) {
            const QJsonObject event = value.toObject();
            const QString phase = event["ph"].toString();
            const int pid = event["pid"].toInt();
            const qint64 at = nanoseconds(event["ts"]);
            if (phase == "X") {
                const bool fresh = slices
                                       .emplace(std::tuple(pid / 4, pid % 4, event["name"].toString()),
                                                std::pair(at, at + nanoseconds(event["dur"])))
                                       .second;
                QVERIFY2(fresh, qPrintable(event["name"].toString()));
            } else if (phase == "s" || phase == "t" || phase == "f") {
                QVERIFY(flows[event["id"].toInt()].emplace(phase, std::pair(pid, at)).second); // of one side only
            } else if (phase == "C") {
                counters[{pid / 4, pid % 4}].emplace_back(at, event["args"].toObject()["bytes"].toInteger());
            }
            if (event["name"] == "process_name")
                names += event["args"].toObject()["name"].toString().endsWith(", measured") ? 1 : 0;
        }
        QCOMPARE(names, 4);
        std::size_t expected = 0, arrows = 0;
        const int tasks = static_cast<int>(p.program.tasks.size());
        for (int side = 0; side < 2; ++side) {
            const Timeline& timeline = side == 0 ? p.timeline : measured;
            for (TaskId t = 0; t < p.program.tasks.size(); ++t) {
                if (timeline.start[t] == notRun)
                    continue;
                ++expected;
                const Task& task = p.program.tasks[t];
                const int device = task.recordedOn();
                const auto slice = slices.find({side, device, QString::fromStdString(p.program.label(t))});
                QVERIFY2(slice != slices.end(), p.program.label(t).c_str());
                QCOMPARE(slice->second, std::pair(qint64(timeline.start[t]), qint64(timeline.end[t])));
                if (task.kind != TaskKind::Transfer)
                    continue;
                const TaskId producer = p.program.afterData[t];
                const auto flow = flows.find(static_cast<int>(t) + side * tasks);
                QVERIFY(flow != flows.end());
                ++arrows;
                if (timeline.start[producer] != notRun) {
                    const auto [process, time] = flow->second.at("s");
                    QCOMPARE(process, side * 4 + p.program.tasks[producer].device);
                    QCOMPARE(time, qint64(timeline.end[producer] - 1)); // inside the slice it leaves
                }
            }
            for (int device = 0; device < 4; ++device) {
                const auto& samples = timeline.memory[device];
                const auto& written = counters[{side, device}];
                QCOMPARE(written.size(), samples.size());
                for (std::size_t i = 0; i < samples.size(); ++i)
                    QCOMPARE(written[i], std::pair(qint64(samples[i].time), qint64(samples[i].bytes)));
            }
        }
        QCOMPARE(slices.size(), expected);
        QCOMPARE(flows.size(), arrows);
    }

    void tablesHaveALinePerBlockAndDevice()
    {
        const Prediction p = predict(designOf("zb-h1"));
        const Timeline measured = shifted(p.timeline);
        const QStringList blocks = QString::fromStdString(joined([&](const Pieces& to) {
                                       blocksCsv(p.program, p.timeline, &measured, to);
                                   })).split('\n', Qt::SkipEmptyParts);
        QCOMPARE(blocks.size(), static_cast<qsizetype>(p.program.computeCount() + 1));
        for (const QString& line : blocks)
            QCOMPARE(line.count(','), 9);
        QVERIFY(QString::fromStdString(joined([&](const Pieces& to) { blocksCsv(p.program, p.timeline, nullptr, to); }))
                    .split('\n')[1]
                    .endsWith(",,"));
        QCOMPARE(QString::fromStdString(joined([&](const Pieces& to) {
                     metricsCsv(p.program, p.timeline, &measured, to);
                 })).count('\n'),
                 1 + 2 * 4);
    }
};

PIPEWRIGHT_TEST(TestPerfetto, QCoreApplication)
#include "tst_perfetto.moc"
