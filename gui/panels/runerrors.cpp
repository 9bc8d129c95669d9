// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/panels/runerrors.h"

#include "gui/panels/errortable.h"
#include "gui/panels/factlist.h"
#include "gui/panels/words.h"

#include <QFileInfo>
#include <QLabel>
#include <QVBoxLayout>

#include <cmath>

namespace pipewright {

namespace {

constexpr double notable = 0.05; ///< errors beyond this are red

Tone toneOf(double error)
{
    return std::fabs(error) > notable ? Tone::Bad : Tone::Plain;
}

} // namespace

RunErrors::RunErrors(Document& document, QWidget* parent)
    : QWidget(parent)
    , m_document(document)
    , m_heading(makeHeading({}, this))
    , m_facts(new FactList(this))
    , m_table(new ErrorTable(document, this))
{
    setAccessibleName(tr("Predicted against run"));
    m_table->setMinimumHeight(140);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    layout->addWidget(m_heading);
    layout->addWidget(m_facts);
    layout->addWidget(m_table, 1);
    connect(&m_document, &Document::overlayChanged, this, &RunErrors::refresh);
    connect(&m_document, &Document::designChanged, this, &RunErrors::refresh);
    refresh();
}

void RunErrors::refresh()
{
    const Document::Overlay* overlay = m_document.overlay();
    setVisible(overlay != nullptr);
    if (!overlay)
        return;
    const Comparison& comparison = overlay->comparison;
    m_heading->setText(tr("Predicted against %1").arg(QFileInfo(overlay->path).completeBaseName()));
    m_heading->setToolTip(overlay->path);
    const QString signs = tr("Predicted minus measured, relative to the measured value");
    std::vector<Fact> facts{
        {tr("makespan"), signedPercent(comparison.makespanError),
         tr("%1. Measured %2, predicted %3").arg(signs, durationText(comparison.measuredMakespan), durationText(comparison.predictedMakespan)),
         toneOf(comparison.makespanError)},
        {tr("block starts, p95"), percentText(comparison.startError.p95), tr("Relative to the measured makespan"), toneOf(comparison.startError.p95)},
        {tr("durations, median"), percentText(comparison.durationError.median), tr("Relative to the measured duration"), toneOf(comparison.durationError.median)},
    };
    Bytes worst = 0;
    double worstShare = 0;
    for (const Comparison::Device& device : comparison.devices) {
        const Bytes difference = device.predictedPeak - device.measuredPeak;
        if (std::llabs(difference) >= std::llabs(worst)) {
            worst = difference;
            worstShare = device.peakError;
        }
    }
    facts.push_back({tr("peak memory"), worst == 0 ? QStringLiteral("0 B") : signedSize(worst), tr("Of the device where it differs most. %1").arg(signs),
                     worst == 0 ? Tone::Good : toneOf(worstShare)});
    if (comparison.unmatched > 0)
        facts.push_back({tr("blocks not recorded"), QString::number(comparison.unmatched), tr("The run was cut short or records were dropped"), Tone::Bad});
    m_facts->setFacts(facts);
}

} // namespace pipewright
