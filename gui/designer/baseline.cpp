// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/baseline.h"

#include "core/base/beyondprediction.h"
#include "core/families/family.h"
#include "core/predict/peakchange.h"
#include "core/predict/throughput.h"
#include "gui/widgets/words.h"

#include <algorithm>

namespace pipewright {

namespace {

double shareOf(double old, double now)
{
    return old > 0 ? (now - old) / old : 0;
}

Baseline::Changes changesOf(const StepNumbers& before, const StepNumbers& after)
{
    Baseline::Changes changes;
    changes.makespan = shareOf(double(before.makespan), double(after.makespan));
    changes.bubble = after.bubble - before.bubble;
    changes.throughput = shareOf(before.tokensPerSecond, after.tokensPerSecond);
    changes.utilization = after.utilization - before.utilization;
    if (before.members && after.members)
        changes.members = shareOf(double(*before.members), double(*after.members));
    if (!before.peaks.empty() && !after.peaks.empty())
        changes.peak = after.highestPeak() - before.highestPeak();
    return changes;
}

} // namespace

Bytes StepNumbers::highestPeak() const
{
    return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

bool Baseline::Pair::comparable() const
{
    return before.complete && after.complete && before.workload == after.workload;
}

Baseline::Baseline(Document& document, QObject* parent) : QObject(parent), m_document(document)
{
    // Edits, undo and redo change the stack's index; replacing the whole design changes the path.
    connect(m_document.undoStack(), &QUndoStack::indexChanged, this, &Baseline::remember);
    connect(&m_document, &Document::pathChanged, this, [this] {
        if (m_document.undoStack()->count() == 0)
            remember();
    });
    connect(m_document.undoStack(), &QUndoStack::cleanChanged, this, [this](bool clean) {
        if (clean) {
            m_saved = present();
            Q_EMIT changed();
        }
    });
    connect(&m_document, &Document::memoryChanged, this, &Baseline::takeMemory);
    connect(&m_document, &Document::overlayChanged, this, &Baseline::changed);
    connect(&m_document, &Document::sideChanged, this, &Baseline::changed);
    connect(&m_document, &Document::designChanged, this, [this] {
        m_dragging = false;
        m_preview = nullptr;
    });
    remember();
}

bool Baseline::has(Against against) const
{
    switch (against) {
    case Against::LastEdit: return true;
    case Against::Saved: return m_saved.has_value();
    case Against::Pinned: return m_pinned.has_value();
    case Against::Run: return m_document.overlay() != nullptr;
    }
    return false;
}

Baseline::Against Baseline::against() const
{
    if (m_chosen && has(*m_chosen))
        return *m_chosen;
    return m_document.showsMeasured() ? Against::Run : Against::LastEdit;
}

void Baseline::setAgainst(Against against)
{
    m_chosen = against;
    Q_EMIT changed();
}

QString Baseline::name(Against against) const
{
    switch (against) {
    case Against::LastEdit: return tr("last edit");
    case Against::Saved: return m_document.path().isEmpty() ? tr("as opened") : tr("saved");
    case Against::Pinned: return m_pinned ? tr("%1, pinned").arg(m_pinnedName) : tr("pinned schedule");
    case Against::Run: return tr("the run");
    }
    return {};
}

void Baseline::pin()
{
    m_pinned = present();
    const Family* const family = findFamily(m_document.design().schedule.family);
    m_pinnedName = family ? QString::fromUtf8(family->title) : tr("own order");
    setAgainst(Against::Pinned);
}

void Baseline::setPreview(bool dragging, const Prediction* preview)
{
    m_dragging = dragging;
    m_preview = preview;
    Q_EMIT changed();
}

int Baseline::workloadOf(const Design& design) const
{
    const auto same = [&design](const std::shared_ptr<const Design>& other) {
        return other->workload == design.workload && other->cluster == design.cluster;
    };
    const auto at = std::find_if(m_workloads.begin(), m_workloads.end(), same);
    if (at != m_workloads.end())
        return static_cast<int>(at - m_workloads.begin());
    auto kept = std::make_shared<Design>(); // without its blocks
    kept->workload = design.workload;
    kept->cluster = design.cluster;
    m_workloads.push_back(std::move(kept));
    return static_cast<int>(m_workloads.size()) - 1;
}

StepNumbers Baseline::numbersOf(const Prediction& prediction, const Design& design) const
{
    const Metrics& metrics = prediction.metrics;
    StepNumbers numbers;
    numbers.makespan = metrics.makespan;
    if (prediction.memoryOfMembers)
        numbers.members = prediction.membersMakespan;
    numbers.bubble = metrics.rateMakespan;
    if (!isMemoryPending(design, prediction))
        numbers.peaks = devicePeaks(metrics);
    for (const DeviceMetrics& device : metrics.devices)
        numbers.idle.push_back(device.idle);
    numbers.tokensPerSecond = tokensPerSecond(design, metrics.makespan);
    numbers.utilization = modelFlopsUtilization(design, metrics.makespan);
    numbers.complete = m_document.unplaced().empty();
    numbers.workload = workloadOf(design);
    return numbers;
}

std::optional<StepNumbers> Baseline::present() const
{
    const Prediction* const prediction = m_document.prediction();
    return prediction ? std::optional(numbersOf(*prediction, m_document.design())) : std::nullopt;
}

void Baseline::remember()
{
    QUndoStack* stack = m_document.undoStack();
    const std::size_t index = stack->index();
    if (stack->count() == 0) { // another design was opened
        m_workloads.clear();
        m_pinned.reset();
        m_saved.reset();
    }
    // At its limit the stack drops its oldest command, and every state moves down by one.
    if (index == m_lastIndex && index > 0 && stack->index() == stack->undoLimit() && !m_history.empty())
        m_history.erase(m_history.begin());
    if (m_history.size() < index + 1 || stack->count() == stack->index())
        m_history.resize(index + 1); // a new edit discards what could be redone
    m_lastIndex = index;
    m_history[index] = present();
    if (stack->isClean())
        m_saved = m_history[index];
    Q_EMIT changed();
}

/// Stores a peak memory that became known after the edit.
void Baseline::takeMemory()
{
    const std::size_t index = m_document.undoStack()->index();
    if (m_document.prediction() && index < m_history.size())
        m_history[index] = present();
    Q_EMIT changed();
}

std::optional<Baseline::Pair> Baseline::lastEdit() const
{
    if (m_dragging || m_preview) {
        const std::optional<StepNumbers> before = present();
        if (!m_preview || !before)
            return std::nullopt;
        return Pair{*before, numbersOf(*m_preview, m_document.design())};
    }
    const int index = m_document.undoStack()->index();
    if (index == 0 || index >= std::ssize(m_history) || !m_history[index - 1] || !m_history[index])
        return std::nullopt;
    return Pair{*m_history[index - 1], *m_history[index]};
}

std::optional<Baseline::Changes> Baseline::ofRun() const
{
    const Document::Overlay* const overlay = m_document.overlay();
    const std::optional<StepNumbers> predicted = present();
    if (!overlay || !predicted || !predicted->complete)
        return std::nullopt;
    const Nanoseconds measured = overlay->comparison.measuredMakespan;
    Changes changes;
    changes.makespan = beyondPrediction(double(measured), double(predicted->makespan));
    changes.bubble = overlay->metrics.rateMakespan - predicted->bubble;
    const Design& design = m_document.design();
    changes.throughput = beyondPrediction(tokensPerSecond(design, measured), predicted->tokensPerSecond);
    changes.utilization = modelFlopsUtilization(design, measured) - predicted->utilization;
    Bytes highest = 0, expected = 0;
    for (const Comparison::Device& device : overlay->comparison.devices) {
        highest = std::max(highest, device.measuredPeak.value_or(0));
        expected = std::max(expected, device.predictedPeak);
    }
    if (highest > 0)
        changes.peak = highest - expected;
    return changes;
}

std::optional<Baseline::Changes> Baseline::changes() const
{
    std::optional<Pair> pair;
    if (m_dragging || m_preview || against() == Against::LastEdit) {
        pair = lastEdit();
    } else if (against() == Against::Run) {
        return ofRun();
    } else if (const std::optional<StepNumbers> now = present()) {
        pair = Pair{against() == Against::Saved ? *m_saved : *m_pinned, *now};
    }
    return pair && pair->comparable() ? std::optional(changesOf(pair->before, pair->after)) : std::nullopt;
}

} // namespace pipewright

#include "moc_baseline.cpp"
