// SPDX-License-Identifier: GPL-3.0-or-later
// What the main window says, read as a screen reader reads it, held against the program's answers about the same
// design.
#pragma once

#include "core/files/designfile.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/dock/dock.h"
#include "gui/dock/steptable.h"
#include "gui/memory/memorypanel.h"
#include "testpaths.h"

#include <nlohmann/json.hpp>

#include <QAccessible>
#include <QProcess>
#include <QRegularExpression>
#include <QTest>

#include <cmath>
#include <map>

namespace pipewright::testing {

using nlohmann::json;

/// What the program prints; its exit status is not asked, since `check` fails for a design with errors.
inline json answerOf(const QStringList& words)
{
    QProcess process;
    process.start(QStringLiteral(PIPEWRIGHT_PROGRAM), words);
    if (!process.waitForFinished(120'000))
        return {};
    return json::parse(process.readAllStandardOutput().toStdString(), nullptr, false);
}

/// Names and descriptions of everything that can be seen, in the order of the tree.
inline void readTexts(QAccessibleInterface* at, QStringList& texts)
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
        readTexts(at->child(i), texts);
}

inline QStringList textsOf(QWidget& window)
{
    QStringList texts;
    readTexts(QAccessible::queryAccessibleInterface(&window), texts);
    return texts;
}

/// What follows "name" in the one text that begins with it; the test fails where there is none.
inline QString valueOf(const QStringList& texts, const QString& name)
{
    for (const QString& text : texts)
        if (text.startsWith(name))
            return text.mid(name.size());
    return {};
}

/// Whether a written quantity is this number but for rounding: "2.27 s" of nanoseconds, "89.7 GiB" of bytes, "22.7 %"
/// of shares, "28,871" of numbers.
inline bool says(QString text, double expected)
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

    /// Every number of the prediction: verdicts, lanes, memory by kind, the status. What disagrees, each with its
    /// place: "step: \"2.27 s\" on screen, 2.28e+09 expected".
    QStringList faults(const json& predicted, const json& checked)
    {
        QStringList found;
        const auto hold = [&found](const QString& place, const QString& text, double expected) {
            if (!says(text, expected))
                found << QStringLiteral("%1: \"%2\" on screen, %3 expected").arg(place, text).arg(expected);
        };
        const auto holdText = [&found](const QString& place, const QString& text, const QString& expected) {
            if (text != expected)
                found << QStringLiteral("%1: \"%2\" on screen, \"%3\" expected").arg(place, text, expected);
        };
        const QStringList texts = this->texts();
        const auto makespan = predicted["makespan_ns"].get<double>();
        hold(QStringLiteral("step"), valueOf(texts, QStringLiteral("Step: ")), makespan);
        hold(QStringLiteral("bubble"), valueOf(texts, QStringLiteral("Bubble: ")),
             predicted["bubble"]["rate_makespan"].get<double>());
        if (predicted.contains("tokens_per_second")) // of formulas alone
            hold(QStringLiteral("throughput"), valueOf(texts, QStringLiteral("Throughput: ")),
                 predicted["tokens_per_second"].get<double>());
        if (predicted.contains("model_flops_utilization") && predicted["model_flops_utilization"].get<double>() > 0)
            hold(QStringLiteral("MFU"), valueOf(texts, QStringLiteral("MFU: ")),
                 predicted["model_flops_utilization"].get<double>());

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
            if (!lane.endsWith(QStringLiteral(", predicted")))
                found << QStringLiteral("lane of %1: \"%2\" on screen").arg(name, lane);
            hold(QStringLiteral("idle of %1").arg(name), lane.section(QStringLiteral("idle "), 1),
                 device["idle_ns"].get<double>() / makespan);
            if (peak > 0) {
                QString shown = lane.section(QStringLiteral("peak "), 1).section(QStringLiteral(", "), 0, 0);
                if (shown.contains(QStringLiteral(" / "))) // "77.7 / 141 GiB"
                    shown = shown.section(QStringLiteral(" / "), 0, 0).contains(QLatin1Char('B'))
                                ? shown.section(QStringLiteral(" / "), 0, 0)
                                : shown.section(QStringLiteral(" / "), 0, 0) + QLatin1Char(' ')
                                      + shown.section(QChar(0x00A0), -1);
                hold(QStringLiteral("peak of %1").arg(name), shown, peak);
            }
        }
        if (highest > 0) {
            const QString name = deviceLabel(document().design(), fullest);
            QString peak = valueOf(texts, QStringLiteral("Peak · %1: ").arg(name));
            if (peak.contains(QStringLiteral(" of "))
                && !peak.section(QStringLiteral(" of "), 0, 0).contains(QLatin1Char('B')))
                peak = peak.section(QStringLiteral(" of "), 0, 0) + QLatin1Char(' ') + peak.section(QChar(0x00A0), -1);
            hold(QStringLiteral("highest peak"), peak, highest);
        }

        const QString status = valueOf(texts, QStringLiteral("Conflicts: "));
        if (over > 0)
            holdText(QStringLiteral("status"), status, QStringLiteral("▲ %1 over memory").arg(over));
        else if (status.startsWith(QChar(0x2713)) != (checked["valid"].get<bool>() && checked["diagnostics"].empty()))
            found << QStringLiteral("status: \"%1\" on screen, check says otherwise").arg(status);
        else if (status.contains(QStringLiteral("spare")))
            hold(QStringLiteral("status"), status.section(QStringLiteral("fits, "), 1), spare);

        // The dock: memory by kind of the device that it shows, and a row for every transfer.
        const int shown = window.memory().device();
        if (const json& device = predicted["per_device"][static_cast<std::size_t>(shown) * alike];
            device.contains("peak_by_kind") && highest > 0 && alike == 1) {
            const QString description =
                QAccessible::queryAccessibleInterface(&window.memory())->text(QAccessible::Description);
            for (const auto& [kind, bytes] : device["peak_by_kind"].items()) {
                if (bytes.get<double>() == 0)
                    continue;
                const QString name = QString::fromStdString(kind) + QLatin1Char(' ');
                const qsizetype at = description.indexOf(name);
                hold(QStringLiteral("memory of ") + name.trimmed(),
                     at < 0 ? QString() : description.mid(at + name.size()).section(QStringLiteral(", "), 0, 0),
                     bytes.get<double>());
            }
        }
        window.dock().showPage(QStringLiteral("transfers"));
        auto* table = window.dock().currentWidget()->findChild<StepTable*>();
        QAccessibleInterface* const rows = QAccessible::queryAccessibleInterface(table);
        holdText(QStringLiteral("transfers"),
                 rows && rows->tableInterface() ? QString::number(rows->tableInterface()->rowCount()) : QString(),
                 QString::number(predicted["transfers"].get<int>()));
        window.dock().showPage(QStringLiteral("memory"));
        return found;
    }

    json checked() { return answerOf({QStringLiteral("check"), file, QStringLiteral("--json")}); }
    bool isChecked()
    {
        return QTest::qWaitFor(
            [this] { return !valueOf(texts(), QStringLiteral("Conflicts: ")).startsWith(QStringLiteral("checking")); },
            60'000);
    }

    void agreesWithTheProgram()
    {
        QVERIFY(settles());
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        const json predicted = this->predicted(), checked = this->checked();
        QVERIFY(predicted.is_object() && checked.is_object());
        QVERIFY(isChecked());
        QCOMPARE(faults(predicted, checked).join(QLatin1Char('\n')), QString());
    }
};

} // namespace pipewright::testing
