// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers on screen, read as a screen reader does, against what the program answers about the same design:
// `predict`, `check` and `compare`, each with --json. A number may differ from its text by rounding alone.
#include "core/files/designfile.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/sideswitch.h"
#include "gui/dock/dock.h"
#include "gui/dock/steptable.h"
#include "gui/memory/memorypanel.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/recordedruns.h"
#include "gui/widgets/theme.h"
#include "makers/groups.h"
#include "testmain.h"
#include "testpaths.h"

#include <nlohmann/json.hpp>

#include <QAccessible>
#include <QApplication>
#include <QProcess>
#include <QRegularExpression>
#include <QTabWidget>
#include <QTest>

#include <cmath>

using namespace pipewright;
using nlohmann::json;

namespace {

/// What the program prints; its exit status is not asked, since `check` fails for a design with errors.
json answerOf(const QStringList& words)
{
    QProcess process;
    process.start(QStringLiteral(PIPEWRIGHT_PROGRAM), words);
    if (!process.waitForFinished(120'000))
        return {};
    return json::parse(process.readAllStandardOutput().toStdString(), nullptr, false);
}

/// Names and descriptions of everything that can be seen, in the order of the tree.
void read(QAccessibleInterface* at, QStringList& texts)
{
    if (!at || !at->isValid() || at->state().invisible)
        return;
    for (const auto kind : {QAccessible::Name, QAccessible::Description})
        if (const QString text = at->text(kind); !text.isEmpty())
            texts << text;
    // Blocks and cells of long tables are not numbers of the step.
    if (at->role() == QAccessible::ListItem || at->role() == QAccessible::Cell)
        return;
    for (int i = 0; i < std::min(at->childCount(), 400); ++i)
        read(at->child(i), texts);
}

QStringList textsOf(QWidget& window)
{
    QStringList texts;
    read(QAccessible::queryAccessibleInterface(&window), texts);
    return texts;
}

/// What follows "name" in the one text that begins with it; the test fails where there is none.
QString valueOf(const QStringList& texts, const QString& name)
{
    for (const QString& text : texts)
        if (text.startsWith(name))
            return text.mid(name.size());
    return {};
}

/// Whether a written quantity is this number but for rounding: "2.27 s" of nanoseconds, "89.7 GiB" of bytes, "22.7 %"
/// of shares, "28,871" of numbers.
bool says(QString text, double expected)
{
    text.replace(QChar(0x00A0), QLatin1Char(' ')).remove(QLatin1Char(','));
    static const QRegularExpression form(QStringLiteral("^([+\u2212-]?)([0-9]+)(?:\\.([0-9]+))? ?([^ ]*)"));
    const QRegularExpressionMatch match = form.match(text);
    if (!match.hasMatch())
        return false;
    static const std::map<QString, double> units{
        {QString(), 1},
        {QStringLiteral("ns"), 1},
        {QStringLiteral("µs"), 1e3},
        {QStringLiteral("ms"), 1e6},
        {QStringLiteral("s"), 1e9},
        {QStringLiteral("min"), 60e9},
        {QStringLiteral("h"), 3600e9},
        {QStringLiteral("%"), 0.01},
        {QStringLiteral("tok/s"), 1},
        {QStringLiteral("B"), 1},
        {QStringLiteral("KiB"), 1024.0},
        {QStringLiteral("MiB"), 1024.0 * 1024},
        {QStringLiteral("GiB"), 1024.0 * 1024 * 1024},
        {QStringLiteral("TiB"), 1024.0 * 1024 * 1024 * 1024},
        {QStringLiteral("pt"), 0.01},
    };
    const auto unit = units.find(match.captured(4));
    if (unit == units.end())
        return false;
    const double digits = std::pow(10.0, -double(match.capturedLength(3) > 0 ? match.capturedLength(3) : 0));
    double shown = (match.captured(2) + QLatin1Char('.') + match.captured(3)).toDouble() * unit->second;
    if (!match.captured(1).isEmpty() && match.captured(1) != QLatin1String("+"))
        shown = -shown;
    return std::abs(shown - expected) <= 0.5000001 * digits * unit->second;
}

#define SAYS(text, expected)                                                                                           \
    QVERIFY2(says(text, expected), qPrintable(QStringLiteral("\"%1\" on screen, %2 expected").arg(text).arg(expected)))

struct NumbersFixture : MainWindowFixture {
    QString file = folder.filePath(QStringLiteral("shown.json"));

    json predicted()
    {
        writeDesign(document().design(), file.toStdString(), true);
        return answerOf({QStringLiteral("predict"), file, QStringLiteral("--json")});
    }
    bool settles()
    {
        return QTest::qWaitFor([this] { return !document().pendingMemory(); }, 60'000);
    }
    QStringList texts() { return textsOf(window); }
    /// "peak 77.7 / 141 GiB, idle 27.2 %, predicted" of a lane.
    static QString laneOf(const QStringList& texts, const QString& device)
    {
        for (qsizetype i = 0; i + 1 < texts.size(); ++i)
            if (texts[i].startsWith(device + QLatin1Char(',')) && texts[i + 1].contains(QStringLiteral("idle ")))
                return texts[i + 1];
        return {};
    }

    /// Every number of the prediction: verdicts, lanes, memory by kind, the status.
    void agreesWithTheProgram()
    {
        QVERIFY(settles());
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        const json predicted = this->predicted();
        QVERIFY(predicted.is_object());
        const QStringList texts = this->texts();
        const auto makespan = predicted["makespan_ns"].get<double>();
        SAYS(valueOf(texts, QStringLiteral("Step: ")), makespan);
        SAYS(valueOf(texts, QStringLiteral("Bubble: ")), predicted["bubble"]["rate_makespan"].get<double>());
        const QString rate = valueOf(texts, QStringLiteral("Throughput: "));
        if (predicted.contains("tokens_per_second")) // of formulas alone
            SAYS(rate, predicted["tokens_per_second"].get<double>());
        const QString share = valueOf(texts, QStringLiteral("MFU: "));
        if (predicted.contains("model_flops_utilization") && predicted["model_flops_utilization"].get<double>() > 0)
            SAYS(share, predicted["model_flops_utilization"].get<double>());

        double highest = 0, spare = 1e300;
        int fullest = -1, over = 0;
        const std::vector<DeviceSpec>& devices = document().design().cluster.devices;
        // A stage's parallel devices are alike and share a lane.
        const auto alike = std::max<std::size_t>(
            1, predicted["per_device"].size() / static_cast<std::size_t>(document().design().schedule.devices()));
        for (std::size_t at = 0; at < predicted["per_device"].size(); at += alike) {
            const json& device = predicted["per_device"][at];
            const int d = static_cast<int>(at / alike);
            const double peak = device.value("peak_bytes", 0.0);
            const QString name = deviceLabel(document().design(), d);
            if (peak > highest) {
                highest = peak;
                fullest = d;
            }
            if (d < std::ssize(devices) && devices[d].memory > 0) {
                over += peak > double(devices[d].memory);
                spare = std::min(spare, double(devices[d].memory) - peak);
            }
            // The lane: its peak and its idle time.
            const QString lane = laneOf(texts, name);
            QVERIFY2(
                lane.endsWith(QStringLiteral(", predicted")),
                qPrintable(QStringLiteral("lane of %1: %2").arg(name, texts.filter(name).join(QStringLiteral(" | ")))));
            SAYS(lane.section(QStringLiteral("idle "), 1), device["idle_ns"].get<double>() / makespan);
            if (peak > 0) {
                QString shown = lane.section(QStringLiteral("peak "), 1).section(QLatin1Char(','), 0, 0);
                if (shown.contains(QStringLiteral(" / "))) // "77.7 / 141 GiB"
                    shown = shown.section(QStringLiteral(" / "), 0, 0).contains(QLatin1Char('B'))
                                ? shown.section(QStringLiteral(" / "), 0, 0)
                                : shown.section(QStringLiteral(" / "), 0, 0) + QLatin1Char(' ')
                                      + shown.section(QChar(0x00A0), -1);
                SAYS(shown, peak);
            }
        }
        if (highest > 0) {
            const QString name = deviceLabel(document().design(), fullest);
            QString peak = valueOf(texts, QStringLiteral("Peak · %1: ").arg(name));
            if (peak.contains(QStringLiteral(" of "))
                && !peak.section(QStringLiteral(" of "), 0, 0).contains(QLatin1Char('B')))
                peak = peak.section(QStringLiteral(" of "), 0, 0) + QLatin1Char(' ') + peak.section(QChar(0x00A0), -1);
            SAYS(peak, highest);
        }

        const json checked = answerOf({QStringLiteral("check"), file, QStringLiteral("--json")});
        QVERIFY(checked.is_object());
        QVERIFY(QTest::qWaitFor(
            [this] {
                return !valueOf(this->texts(), QStringLiteral("Conflicts: ")).startsWith(QStringLiteral("checking"));
            },
            60'000));
        const QString status = valueOf(this->texts(), QStringLiteral("Conflicts: "));
        QCOMPARE(status.startsWith(QChar(0x2713)), checked["valid"].get<bool>() && checked["diagnostics"].empty());
        if (over > 0)
            QCOMPARE(status, QStringLiteral("▲ %1 over memory").arg(over));
        if (status.contains(QStringLiteral("spare")))
            SAYS(status.section(QStringLiteral("fits, "), 1), spare);

        // The dock: memory by kind of the device that it shows, and a row for every transfer.
        const int shown = window.memory().device();
        if (const json& device = predicted["per_device"][static_cast<std::size_t>(shown) * alike];
            device.contains("peak_by_kind") && highest > 0 && alike == 1) {
            for (const auto& [kind, bytes] : device["peak_by_kind"].items()) {
                if (bytes.get<double>() == 0)
                    continue;
                const QString description =
                    QAccessible::queryAccessibleInterface(&window.memory())->text(QAccessible::Description);
                const QString name = QString::fromStdString(kind) + QLatin1Char(' ');
                const qsizetype at = description.indexOf(name);
                QVERIFY2(at >= 0, qPrintable(name + description));
                SAYS(description.mid(at + name.size()).section(QStringLiteral(", "), 0, 0), bytes.get<double>());
            }
        }
        window.dock().showPage(QStringLiteral("transfers"));
        auto* table = window.dock().currentWidget()->findChild<StepTable*>();
        QAccessibleInterface* const rows = QAccessible::queryAccessibleInterface(table);
        QVERIFY(rows && rows->tableInterface());
        QCOMPARE(rows->tableInterface()->rowCount(), predicted["transfers"].get<int>());
        window.dock().showPage(QStringLiteral("memory"));
    }
};

struct Made {
    const char* name;
    QStringList words; ///< of `new`
};

const Made madeDesigns[] = {
    {"one that fits",
     {"zb-h1", "--model", "llama-3-8b", "--cluster", "h200-node", "--devices", "4", "--microbatches", "8"}},
    {"over memory",
     {"gpipe", "--model", "qwen3-32b", "--cluster", "h200-node", "--devices", "8", "--microbatches", "64"}},
    {"64 devices",
     {"1f1b", "--model", "llama-3-70b", "--cluster", "h200-nodes", "--devices", "64", "--microbatches", "64"}},
    {"ZeRO-3",
     {"1f1b", "--model", "llama-3-8b", "--cluster", "h200-node", "--devices", "4", "--microbatches", "8", "--replicas",
      "2", "--zero", "3"}},
    {"interleaved",
     {"interleaved-1f1b", "--model", "llama-3-8b", "--cluster", "h100-node", "--devices", "4", "--microbatches", "8",
      "--chunks", "2"}},
    {"both directions",
     {"dualpipe", "--model", "qwen2.5-7b", "--cluster", "h200-node", "--devices", "4", "--microbatches", "8"}},
    {"recomputation",
     {"1f1b", "--model", "llama-3-8b", "--cluster", "h100-node", "--devices", "4", "--microbatches", "8", "--recompute",
      "full"}},
    {"tensor parallel",
     {"zb-v", "--model", "llama-3-70b", "--cluster", "h200-nodes", "--devices", "4", "--microbatches", "8",
      "--tensor-parallel", "8"}},
    {"no model", {"1f1b", "--devices", "4", "--microbatches", "8", "--forward", "3ms", "--transfer", "1ms"}},
    {"updates amid the run", {"pipedream", "--devices", "3", "--microbatches", "6"}},
};

} // namespace

class TestNumbers : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void roundingIsAllThatIsForgiven()
    {
        QVERIFY(says(QStringLiteral("2.27\u00a0s"), 2'269'972'623));
        QVERIFY(!says(QStringLiteral("2.27\u00a0s"), 2'276'000'000));
        QVERIFY(says(QStringLiteral("89.7 GiB"), 96'288'874'496));
        QVERIFY(!says(QStringLiteral("89.8 GiB"), 96'288'874'496));
        QVERIFY(says(QStringLiteral("28,871\u00a0tok/s"), 28870.83));
        QVERIFY(says(QStringLiteral("22.7\u00a0%"), 0.22712));
        QVERIFY(!says(QStringLiteral("–"), 0));
        QVERIFY(!says(QString(), 0));
    }

    void whatIsMadeShowsItsPrediction_data()
    {
        QTest::addColumn<QStringList>("words");
        for (const Made& made : madeDesigns)
            QTest::newRow(made.name) << made.words;
    }

    void whatIsMadeShowsItsPrediction()
    {
        QFETCH(QStringList, words);
        NumbersFixture fixture;
        const QString made = fixture.folder.filePath(QStringLiteral("made.json"));
        const json written = answerOf(QStringList{QStringLiteral("new")} + words
                                      + QStringList{QStringLiteral("-o"), made, QStringLiteral("--json")});
        QVERIFY(written.is_object());
        fixture.document().open(made);
        fixture.agreesWithTheProgram();
    }

    void groupsShowTheirMembers()
    {
        NumbersFixture fixture;
        fixture.document().reset(test::groupDesign("1f1b", {{1e9, 5e8}, {2e9, 1e9}}, 4));
        QVERIFY(fixture.settles());
        const json predicted = fixture.predicted(); // of the members; the lanes are the groups
        QVERIFY(predicted.is_object());
        const QStringList texts = fixture.texts();
        SAYS(valueOf(texts, QStringLiteral("members: ")), predicted["makespan_ns"].get<double>());
        std::vector<double> peaks(2);
        for (const json& member : predicted["per_device"]) {
            double& peak = peaks[member["group"].get<std::size_t>()];
            peak = std::max(peak, member["peak_bytes"].get<double>());
        }
        for (std::size_t group = 0; group < peaks.size(); ++group) {
            const QString name = deviceLabel(fixture.document().design(), int(group));
            SAYS(fixture.laneOf(texts, name).section(QStringLiteral("peak "), 1).section(QLatin1Char(','), 0, 0),
                 peaks[group]);
        }
        const std::size_t fullest = peaks[1] > peaks[0] ? 1 : 0;
        SAYS(valueOf(texts, QStringLiteral("Peak · %1: ").arg(deviceLabel(fixture.document().design(), int(fullest)))),
             peaks[fullest]);
    }

    void anEditShowsWhatItChanges()
    {
        NumbersFixture fixture;
        const json before = fixture.predicted();
        QVERIFY(!hasErrors(fixture.document().apply(PinBlock{{Op::F, 0, 1, 0}, 300'000'000})));
        const json after = fixture.predicted();
        fixture.agreesWithTheProgram();
        const QStringList texts = fixture.texts();
        const auto number = [](const json& of, const char* name) { return of[name].get<double>(); };
        // The second text that begins so is the change.
        const auto change = [&texts](const QString& name) {
            QStringList found;
            for (const QString& text : texts)
                if (text.startsWith(name))
                    found << text.mid(name.size());
            return found.size() > 1 ? found[1] : QString();
        };
        SAYS(change(QStringLiteral("Step: ")), number(after, "makespan_ns") / number(before, "makespan_ns") - 1);
        SAYS(change(QStringLiteral("Bubble: ")),
             after["bubble"]["rate_makespan"].get<double>() - before["bubble"]["rate_makespan"].get<double>());
        int listed = 0;
        for (std::size_t d = 0; d < after["per_device"].size(); ++d) {
            const QString name = deviceLabel(fixture.document().design(), int(d));
            const QString idle = valueOf(texts, name + QStringLiteral(", idle: "));
            if (idle.isEmpty())
                continue;
            ++listed;
            const QString last = idle.section(QStringLiteral(" → "), -1);
            SAYS(last, after["per_device"][d]["idle_ns"].get<double>());
            QString first = idle.section(QStringLiteral(" → "), 0, 0);
            if (!first.contains(QChar(0x00A0)))
                first += QLatin1Char(' ') + last.section(QChar(0x00A0), -1);
            SAYS(first, before["per_device"][d]["idle_ns"].get<double>());
            const QString peak = valueOf(texts, name + QStringLiteral(", peak: ")).section(QStringLiteral(" → "), -1);
            SAYS(peak, after["per_device"][d]["peak_bytes"].get<double>());
        }
        QVERIFY(listed > 0);
    }

    void anImportedScheduleShowsItsPrediction()
    {
        NumbersFixture fixture;
        const QString csv = fixture.folder.filePath(QStringLiteral("schedule.csv")),
                      imported = fixture.folder.filePath(QStringLiteral("imported.json"));
        (void)fixture.predicted(); // writes the design
        const json exported =
            answerOf({QStringLiteral("export"), fixture.file, QStringLiteral("--to"), QStringLiteral("pytorch-csv"),
                      QStringLiteral("-o"), csv, QStringLiteral("--json")});
        QVERIFY(exported.is_object());
        const json taken =
            answerOf({QStringLiteral("import"), csv, QStringLiteral("-o"), imported, QStringLiteral("--json")});
        QVERIFY(taken.is_object());
        fixture.document().open(imported);
        fixture.agreesWithTheProgram();
    }

    void anOverlaidRunShowsItsComparison()
    {
        NumbersFixture fixture;
        const QString trace = fixture.folder.filePath(QStringLiteral("run.db"));
        recordSlowDevice(fixture.document(), trace, 2, {1.0, 1.3, 1.5});
        fixture.document().setOverlay(trace);
        (void)fixture.predicted();
        const json compared = answerOf({QStringLiteral("compare"), fixture.file, trace, QStringLiteral("--json")});
        QVERIFY(compared.is_object());
        const auto measured = compared["makespan"]["measured_ns"].get<double>();
        const auto predicted = compared["makespan"]["predicted_ns"].get<double>();
        fixture.document().setSide(Side::Measured);
        QStringList texts = fixture.texts();
        SAYS(valueOf(texts, QStringLiteral("Step: ")), measured);
        fixture.document().setSide(Side::Both);
        texts = fixture.texts();
        const QString pair = valueOf(texts, QStringLiteral("Step: "));
        SAYS(pair.section(QStringLiteral(" → "), 1), measured);
        QString first = pair.section(QStringLiteral(" → "), 0, 0);
        if (!first.contains(QChar(0x00A0)))
            first += QLatin1Char(' ') + pair.section(QChar(0x00A0), -1);
        SAYS(first, predicted);
        fixture.window.answers().setCurrentIndex(1); // what the run says
        SAYS(valueOf(fixture.texts(), QStringLiteral("difference: ")), measured / predicted - 1);
        fixture.document().setSide(Side::Predicted);
        fixture.agreesWithTheProgram();
    }
};

PIPEWRIGHT_TEST(TestNumbers, QApplication)

#include "tst_numbers.moc"
