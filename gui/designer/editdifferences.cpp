// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/editdifferences.h"

#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QLabel>
#include <QTimer>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr std::size_t mostDevices = 8; // the devices that change most; the others are counted

Tone lessIsGood(double difference)
{
    return difference < 0 ? Tone::Good : difference > 0 ? Tone::Bad : Tone::Dim;
}

/// "222 → 170 ms"; a value that stays, as it is written, is written once.
QString idleText(Nanoseconds before, Nanoseconds after)
{
    const QString text = durationText(after);
    return durationText(before) == text ? text : pairOfDurations(before, after);
}

QString peakText(Bytes before, Bytes after, Bytes largest)
{
    const QString text = sizeAmong(after, largest);
    return sizeAmong(before, largest) == text ? text : pairText(sizeAmong(before, largest), text);
}

double relativeChange(double before, double after)
{
    return std::abs(after - before) / std::max({std::abs(before), std::abs(after), 1.0});
}

} // namespace

EditDifferences::EditDifferences(Document& document, const Baseline& baseline, QWidget* parent)
    : QWidget(parent), m_document(document), m_baseline(baseline), m_name(makeCaption({}, TextSize::Small, this)),
      m_table(new QWidget(this)), m_grid(makeLayout<QGridLayout>(m_table, {0, 0, 0, 0}, 4)),
      m_peakHeading(makeCaption(tr("peak"), TextSize::Small, m_table)),
      m_summary(makeCaption({}, TextSize::Small, this))
{
    onThemeChange(this, [this] { QTimer::singleShot(0, this, &EditDifferences::tint); });
    setAccessibleName(tr("What the last edit changes on each device"));
    for (QLabel* label : {m_name, m_summary})
        label->setWordWrap(true);
    m_grid->setColumnStretch(0, 1);
    m_grid->setHorizontalSpacing(10);
    auto* idle = makeCaption(tr("idle"), TextSize::Small, m_table);
    for (QLabel* label : {idle, m_peakHeading})
        label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_grid->addWidget(idle, 0, 1);
    m_grid->addWidget(m_peakHeading, 0, 2);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 8);
    layout->addWidget(makeHeading(tr("Last edit, by device"), this));
    layout->addWidget(m_name);
    layout->addWidget(m_table);
    layout->addWidget(m_summary);
    connect(&m_baseline, &Baseline::changed, this, &EditDifferences::refresh);
    refresh();
}

QString EditDifferences::value(const QString& device, Value value) const
{
    for (const Labels& row : m_rows)
        if (!row.name->isHidden() && row.name->text() == device)
            return (value == Idle ? row.idle : row.peak)->text();
    return {};
}

QString EditDifferences::summary() const
{
    return m_summary->isHidden() ? QString() : m_summary->text();
}

/// Why a peak is not known.
QString EditDifferences::pendingPeak(const Baseline::Pair& pair) const
{
    return m_baseline.isPreviewing() && pair.after.peaks.empty()
               ? pendingUntilDrop().words
               : m_document.pendingMemory().value_or(PendingMemory{QStringLiteral("–"), {}}).words;
}

void EditDifferences::showNothing()
{
    if (m_baseline.isDragging()) {
        // The rows keep their places, since legal and illegal places alternate during a drag.
        for (const Labels& row : m_rows) {
            row.idle->setText(QStringLiteral("–"));
            row.peak->setText(QStringLiteral("–"));
            for (QLabel* label : {row.idle, row.peak})
                setTone(label, Tone::Dim);
        }
        m_name->setText(tr("if dropped here"));
        m_summary->setText(tr("Nothing would change, or it cannot be dropped here."));
        m_summary->show();
        return;
    }
    showRows({}, 0);
    m_name->setText(m_document.undoStack()->index() > 0
                        ? tr("No numbers: the schedule cannot run before or after it.")
                        : tr("Drag a block, or Alt+←/→ on the selected one, to see what it changes."));
}

void EditDifferences::showRows(std::vector<Row> rows, int unchanged)
{
    const std::size_t changed = rows.size();
    if (rows.size() > mostDevices) {
        std::nth_element(rows.begin(), rows.begin() + mostDevices, rows.end(),
                         [](const Row& a, const Row& b) { return a.weight > b.weight; });
        rows.resize(mostDevices);
        std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.device < b.device; });
    }
    while (m_rows.size() < rows.size()) {
        Labels& made = m_rows.emplace_back();
        made.name = makeCaption({}, TextSize::Small, m_table);
        made.idle = makeNumber({}, TextSize::Small, m_table);
        made.peak = makeNumber({}, TextSize::Small, m_table);
        const int at = static_cast<int>(m_rows.size());
        m_grid->addWidget(made.name, at, 0);
        for (QLabel* label : {made.idle, made.peak})
            m_grid->addWidget(label, at, label == made.idle ? 1 : 2, Qt::AlignRight);
    }
    const bool preview = m_baseline.isPreviewing();
    const QString source =
        preview
            ? tr("Predicted: now, and if dropped here. The peaks of a large design are approximate until it is dropped")
            : tr("Predicted: before the edit, and after it");
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        Labels& shown = m_rows[i];
        const bool used = i < rows.size();
        for (QLabel* label : {shown.name, shown.idle, shown.peak})
            label->setVisible(used);
        if (!used)
            continue;
        const QString name = deviceLabel(m_document.design(), rows[i].device);
        shown.name->setText(name);
        shown.idle->setText(rows[i].idle);
        shown.peak->setText(rows[i].peak);
        shown.idle->setAccessibleName(tr("%1, idle: %2").arg(name, rows[i].idle));
        shown.peak->setAccessibleName(tr("%1, peak: %2").arg(name, rows[i].peak));
        for (QLabel* label : {shown.idle, shown.peak})
            label->setToolTip(source);
        shown.idleTone = rows[i].idleTone;
        shown.peakTone = rows[i].peakTone;
    }
    tint();
    m_table->setVisible(!rows.empty());
    m_peakHeading->setVisible(
        std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.peak.isEmpty(); }));
    QStringList others;
    if (changed > rows.size())
        others << (changed - rows.size() == 1 ? tr("1 more device with smaller changes")
                                              : tr("%1 more devices with smaller changes").arg(changed - rows.size()));
    if (unchanged > 0 && changed > 0)
        others << (unchanged == 1 ? tr("1 device unchanged") : tr("%1 devices unchanged").arg(unchanged));
    else if (unchanged > 0)
        others << tr("No device's idle time or peak changes.");
    m_summary->setText(others.join(QStringLiteral(" · ")));
    m_summary->setVisible(!others.isEmpty());
}

void EditDifferences::tint()
{
    for (const Labels& row : m_rows) {
        setTone(row.idle, row.idleTone);
        setTone(row.peak, row.peakTone);
    }
}

void EditDifferences::refresh()
{
    const std::optional<Baseline::Pair> pair = m_baseline.lastEdit();
    if (!pair)
        return showNothing();
    const StepNumbers &before = pair->before, &after = pair->after;
    m_name->setText(m_baseline.isPreviewing() ? tr("if dropped here") : m_document.undoStack()->undoText());
    if (!pair->comparable() || before.idle.size() != after.idle.size()) {
        showRows({}, 0);
        m_summary->setText(tr("Another model, cluster or amount of work: nothing to compare by device."));
        m_summary->show();
        return;
    }
    const bool known = before.peaks.size() == after.idle.size() && after.peaks.size() == after.idle.size();
    const bool anyPeak = known && after.highestPeak() + before.highestPeak() > 0; // else the design has no sizes
    const Bytes largest = std::max(before.highestPeak(), after.highestPeak());
    std::vector<Row> rows;
    for (std::size_t d = 0; d < after.idle.size(); ++d) {
        const double idle = double(after.idle[d] - before.idle[d]);
        const double peak = known ? double(after.peaks[d] - before.peaks[d]) : 0;
        if (idle == 0 && peak == 0)
            continue;
        rows.push_back({static_cast<int>(d), idleText(before.idle[d], after.idle[d]),
                        anyPeak  ? peakText(before.peaks[d], after.peaks[d], largest)
                        : !known ? pendingPeak(*pair)
                                 : QString(),
                        lessIsGood(idle), lessIsGood(peak),
                        relativeChange(double(before.idle[d]), double(after.idle[d]))
                            + (known ? relativeChange(double(before.peaks[d]), double(after.peaks[d])) : 0)});
    }
    const int unchanged = static_cast<int>(after.idle.size() - rows.size());
    showRows(std::move(rows), unchanged);
}

} // namespace pipewright

#include "moc_editdifferences.cpp"
