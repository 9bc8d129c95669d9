// SPDX-License-Identifier: GPL-3.0-or-later
// The inspector's explanation of why a device waits, for the shown side (predicted or measured).
#include "core/schedule/edits.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/measuredexplanation.h"
#include "gui/widgets/words.h"

#include <QLabel>
#include <QStringList>

namespace pipewright {

void Inspector::explainTail(int device, Nanoseconds start, Nanoseconds end)
{
    const Prediction* prediction = m_document.prediction();
    if (!prediction)
        return;
    const bool measured = m_document.showsMeasured();
    const Timeline& times = measured ? m_document.overlay()->explanation.completed : prediction->timeline;
    const std::optional<Block> last = lastBlock(prediction->program, times);
    if (!last)
        return;
    const Design& design = m_document.design();
    m_whyHeading->setText(tr("Why %1 is idle at the end · %2")
                              .arg(deviceLabel(design, device), sideName(measured ? Side::Measured : Side::Predicted)));
    QString text = tr("%1 until the step ends: %2 has nothing left to do while %3 on %4 is still to finish.")
                       .arg(durationText(end - start), deviceLabel(design, device), blockText(*last),
                            deviceLabel(design, pipewright::find(design.schedule, *last).device));
    QStringList links;
    for (const WaitLink& link : waitingChain(prediction->program, times, *last, 3))
        links << tr("%1 on %2").arg(blockText(link.block), deviceLabel(design, link.device));
    if (!links.isEmpty())
        text += QLatin1Char(' ') + tr("Before that one come %1.").arg(links.join(QStringLiteral(", ")));
    m_why->setText(text);
}

void Inspector::showWhy(const BlockAnswers& answers)
{
    const Prediction& prediction = *m_document.prediction();
    const Document::Overlay* const overlay = m_document.overlay();
    const bool measured = m_document.showsMeasured();
    const Nanoseconds idle = measured ? measuredIdleBefore(prediction, *overlay, answers.task) : answers.idleBefore;
    const QString heading =
        idle > 0 ? tr("Why %1 waits before it")
                       .arg(deviceLabel(m_document.design(), prediction.program.tasks[answers.task].device))
                 : tr("Why it starts then");
    m_whyHeading->setText(
        QStringLiteral("%1 · %2").arg(heading, sideName(measured ? Side::Measured : Side::Predicted)));
    if (!measured) {
        m_why->setText(answers.why);
        return;
    }
    QString text = measuredWhy(m_document.design(), prediction, *overlay, answers.task);
    if (m_document.side() == Side::Both)
        text = tr("%1 Predicted: %2 idle.")
                   .arg(text, answers.idleBefore > 0 ? durationText(answers.idleBefore) : tr("nothing"));
    m_why->setText(text);
}

} // namespace pipewright
