// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/findings.h"

#include "core/predict/designcheck.h"

namespace pipewright {

namespace {

constexpr std::int64_t atOnce = 2000; ///< blocks, checked in some milliseconds
constexpr std::size_t mostRemedies = 4;

} // namespace

Findings::Findings(Document& document, QObject* parent) : QObject(parent), m_document(document)
{
    connect(&m_document, &Document::designChanged, this, &Findings::restart);
    restart();
}

Findings::Checked Findings::check(const Design& design)
{
    std::vector<MemoryPeak> crossed;
    Checked checked{checkDesign(design, &crossed), 0};
    checked.overMemory = static_cast<int>(crossed.size());
    return checked;
}

void Findings::restart()
{
    m_checking.drop();
    m_remedying.drop();
    m_remedies.clear();
    m_remediesAsked = m_remediesKnown = false;
    const std::shared_ptr<const Design> design = m_document.sharedDesign();
    if (!m_document.unplaced().empty() || !m_document.prediction())
        return take({m_document.diagnostics(), 0}); // it cannot be checked as a whole
    if (design->schedule.blocks() <= atOnce)
        return take(check(*design));
    m_known = false;
    m_all.clear();
    m_overMemory = 0;
    m_checking.start([design](const auto&) { return check(*design); },
                     [this](Checked checked) { take(std::move(checked)); });
    Q_EMIT changed();
}

void Findings::take(Checked checked)
{
    m_known = true;
    m_all = std::move(checked.all);
    m_overMemory = checked.overMemory;
    Q_EMIT changed();
}

const std::vector<MemoryRemedy>& Findings::remedies()
{
    if (m_overMemory > 0 && !m_remediesAsked) {
        m_remediesAsked = true;
        m_remedying.start([design = m_document.sharedDesign()](
                              const auto& outdated) { return memoryRemedies(*design, mostRemedies, outdated); },
                          [this](std::vector<MemoryRemedy> found) {
                              m_remedies = std::move(found);
                              m_remediesKnown = true;
                              Q_EMIT remediesChanged();
                          });
    }
    return m_remedies;
}

} // namespace pipewright

#include "moc_findings.cpp"
