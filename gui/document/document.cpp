// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/document.h"

#include "core/base/inputfile.h"
#include "core/cluster/devicename.h"
#include "core/files/designfile.h"
#include "core/schedule/edits.h"
#include "core/schedule/validate.h"
#include "gui/document/namededits.h"
#include "gui/document/timelinelayout.h"
#include "gui/document/undocommand.h"
#include "traces/analysis/idletime.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QEvent>
#include <QStringList>

#include <algorithm>

namespace pipewright {

namespace {

std::shared_ptr<const TimelineLayout> layoutOf(const Design& design, const Prediction* prediction)
{
    auto layout = std::make_shared<TimelineLayout>(
        prediction ? TimelineLayout(prediction->program, prediction->timeline, design.schedule.devices())
                   : TimelineLayout::fromOrder(design));
    layout->markRecomputed(design);
    return layout;
}

} // namespace

QString deviceLabel(const Design& design, int device)
{
    return QString::fromStdString(deviceName(design.cluster, device));
}

QString blockText(const Block& block)
{
    return QString::fromStdString(toString(block));
}

Document::Document(QObject* parent) : QObject(parent)
{
    // Every step holds a design; a few hundred steps are more than anybody retraces.
    m_undoStack.setUndoLimit(300);
    m_worker.setMaxThreadCount(1);
}

Document::~Document()
{
    m_worker.waitForDone();
}

std::shared_ptr<Document::Outcome> Document::outcomeOf(const Design& design, MemberPredictor& members)
{
    auto outcome = std::make_shared<Outcome>();
    QElapsedTimer timer;
    timer.start();
    try {
        outcome->prediction =
            std::make_shared<const Prediction>(members.predictPlaced(design, MemberPredictor::Patience::Quick));
    } catch (const Error& error) {
        outcome->diagnostics = error.diagnostics();
    }
    outcome->milliseconds = static_cast<double>(timer.nsecsElapsed()) / 1e6;
    return outcome;
}

std::shared_ptr<const TimelineLayout> Document::layout() const
{
    if (!m_outcome->layout)
        m_outcome->layout = layoutOf(*m_design, prediction());
    return m_outcome->layout;
}

Document::Range Document::statistics(Nanoseconds from, Nanoseconds to) const
{
    Range result;
    const Prediction* const predicted = prediction();
    if (!predicted)
        return result;
    if (!m_outcome->ranges)
        m_outcome->ranges =
            std::make_shared<const RangeIndex>(predicted->program, predicted->timeline, predicted->timeline.memory);
    Nanoseconds later = 0;
    if (m_overlay) {
        if (!m_overlay->ranges)
            m_overlay->ranges = std::make_shared<const RangeIndex>(predicted->program, m_overlay->explanation.completed,
                                                                   m_overlay->measured.memory);
        result.measured = m_overlay->ranges->between(from, to);
        result.measuredIdle = idleBetween(m_overlay->explanation.gaps, from, to);
        if (side() == Side::Both)
            later = m_overlay->ranges->begin() - m_outcome->ranges->begin();
    }
    result.predicted = m_outcome->ranges->between(from - later, to - later);
    return result;
}

const std::vector<Block>& Document::unplaced() const
{
    if (!m_unplaced)
        m_unplaced = unplacedBlocks(m_design->schedule);
    return *m_unplaced;
}

void Document::open(const QString& path)
{
    // A recording carries the design that it ran.
    if (isDatabase(path.toStdString())) {
        reset(TraceReader(path.toStdString()).design());
        setOverlay(path);
        return;
    }
    reset(readDesign(path.toStdString()), path);
}

void Document::save(const QString& path)
{
    settle();
    writeDesign(*m_design, path.toStdString(), true);
    m_undoStack.setClean();
    if (m_path != path) {
        m_path = path;
        Q_EMIT pathChanged();
    }
}

void Document::reset(Design design, const QString& path)
{
    settle();
    const bool hadOverlay = m_overlay != nullptr;
    m_undoStack.clear();
    m_undoStack.setClean(); // clear() does not do it on an empty stack that was marked unclean
    m_recent.clear();
    m_recording.reset();
    m_overlay.reset();
    select(std::nullopt);
    show(std::make_shared<const Design>(std::move(design)));
    m_path = path;
    Q_EMIT pathChanged();
    if (hadOverlay)
        Q_EMIT overlayChanged();
}

void Document::show(std::shared_ptr<const Design> design, std::shared_ptr<Outcome> outcome)
{
    m_design = std::move(design);
    m_outcome = outcome ? std::move(outcome) : outcomeOf(*m_design, *m_members);
    m_unplaced.reset();
    constexpr std::size_t kept = 3;
    if (isLarge(*m_design)) {
        std::erase(m_recent, m_outcome);
        m_recent.push_back(m_outcome);
        if (m_recent.size() > kept)
            m_recent.pop_front();
    }

    const bool hadOverlay = m_overlay != nullptr;
    layOver();
    // A block that an edit removed for good (another family, fewer microbatches) cannot stay selected; one
    // that went back to the tray can.
    const auto inTray = [this](const Block& block) {
        return std::find(unplaced().begin(), unplaced().end(), block) != unplaced().end();
    };
    const bool lostSelection =
        m_selection && find(m_design->schedule, *m_selection).device < 0 && !inTray(*m_selection);
    if (lostSelection)
        m_selection.reset();
    Q_EMIT designChanged();
    if (lostSelection)
        Q_EMIT selectionChanged();
    if (hadOverlay || m_overlay)
        Q_EMIT overlayChanged();
}

Diagnostics Document::commit(Edit edit, std::shared_ptr<Outcome> outcome)
{
    if (m_work) {
        settle();
        return {{Severity::Error, edit.text.toStdString(), "the schedule has changed meanwhile", "try again"}};
    }
    if (hasErrors(edit.diagnostics) || edit.design == m_design || *edit.design == *m_design)
        return std::move(edit.diagnostics);
    if (outcome || !isLarge(*edit.design)) {
        m_undoStack.push(new DesignCommand(*this, std::move(edit.design), edit.text, std::move(outcome)));
        return std::move(edit.diagnostics);
    }
    start(std::make_shared<Work>(Work{std::move(edit.design), edit.text, nullptr, {}}),
          [members = m_members](Work& work) {
              work.outcome = outcomeOf(*work.design, *members);
              work.outcome->layout = layoutOf(*work.design, work.outcome->prediction.get());
          });
    return std::move(edit.diagnostics);
}

Document::Edit Document::tryEdit(const EditRequest& request) const
{
    Edit edit = tryEdit(request, m_design, prediction());
    if (std::holds_alternative<MoveTransfer>(request) && !prediction())
        edit.diagnostics = diagnostics(); // the reason why there is no order to change
    return edit;
}

Document::Edit Document::tryEdit(const EditRequest& request, const std::shared_ptr<const Design>& design,
                                 const Prediction* present)
{
    EditedDesign edited = pipewright::apply(request, design, present);
    const QString text = editName(request, *design, present, edited);
    return {std::move(edited.design), std::move(edited.diagnostics), text};
}

Document::Edit Document::tryEdit(std::span<const EditRequest> requests, const std::shared_ptr<const Design>& design,
                                 const Prediction* present)
{
    if (requests.size() == 1)
        return tryEdit(requests.front(), design, present);
    EditedDesign edited = pipewright::apply(requests, design, present);
    QStringList names;
    for (const EditRequest& request : requests)
        names << editName(request, *design, present, edited);
    return {std::move(edited.design), std::move(edited.diagnostics), names.join(QStringLiteral(" · "))};
}

Diagnostics Document::apply(const EditRequest& request)
{
    return commit(tryEdit(request));
}

void Document::applyLater(std::vector<EditRequest> requests)
{
    if (m_work || !isLarge(*m_design)) {
        settle();
        const EditRequest last = requests.back();
        if (const Diagnostics diagnostics = commit(tryEdit(requests, m_design, prediction())); hasErrors(diagnostics))
            Q_EMIT editRefused(diagnostics, last);
        return;
    }
    start(std::make_shared<Work>(Work{m_design, {}, nullptr, {}, std::move(requests)}),
          [present = sharedPrediction(), members = m_members](Work& work) {
              Edit made = tryEdit(work.requests, work.design, present.get());
              work.diagnostics = std::move(made.diagnostics);
              if (hasErrors(work.diagnostics) || made.design == work.design)
                  return;
              work.design = std::move(made.design);
              work.text = made.text;
              work.outcome = outcomeOf(*work.design, *members);
              work.outcome->layout = layoutOf(*work.design, work.outcome->prediction.get());
          });
}

void Document::start(std::shared_ptr<Work> work, std::function<void(Work&)> prepare)
{
    m_work = work;
    qApp->installEventFilter(this);
    m_worker.start([this, work, prepare = std::move(prepare)] {
        prepare(*work);
        QMetaObject::invokeMethod(
            this,
            [this, work] {
                if (m_work == work)
                    settle();
            },
            Qt::QueuedConnection);
    });
    Q_EMIT workingChanged();
}

void Document::settle()
{
    if (!m_work)
        return;
    m_worker.waitForDone();
    qApp->removeEventFilter(this);
    const std::shared_ptr<Work> work = std::exchange(m_work, nullptr);
    if (work->outcome)
        m_undoStack.push(new DesignCommand(*this, std::move(work->design), work->text, std::move(work->outcome)));
    else
        Q_EMIT editRefused(work->diagnostics, work->requests.back()); // empty diagnostics: the edit changes nothing
    Q_EMIT workingChanged();
}

bool Document::eventFilter(QObject* watched, QEvent* event)
{
    switch (event->type()) {
    case QEvent::KeyPress:
    case QEvent::Shortcut:
    case QEvent::MouseButtonPress:
    case QEvent::MouseButtonDblClick:
    case QEvent::ContextMenu:
    case QEvent::DragEnter:
    case QEvent::Drop:
    case QEvent::Close: settle(); break;
    default: break;
    }
    return QObject::eventFilter(watched, event);
}

void Document::replaceDesign(Design design, const QString& text)
{
    settle(); // replaces the design, so a pending edit must arrive first
    apply(ReplaceDesign{std::make_shared<const Design>(std::move(design)), text.toStdString()});
}

void Document::select(std::optional<Block> block)
{
    if (m_selection == block)
        return;
    m_selection = block;
    Q_EMIT selectionChanged();
}

void Document::setOverlay(const QString& tracePath, int step)
{
    if (!prediction())
        throw Error("overlay", "there is no prediction to lay a trace over",
                    "resolve the conflicts of the schedule first");
    auto recording = std::make_shared<Recording>(tracePath, step);
    auto overlay = recording->over(*m_design, m_outcome->prediction);
    takeOverlay(std::move(recording), std::move(overlay), prediction());
}

bool Document::takeOverlay(std::shared_ptr<Recording> recording, std::shared_ptr<Overlay> overlay,
                           const Prediction* prediction)
{
    if (prediction != this->prediction())
        return false;
    m_laying.drop();
    m_recording = std::move(recording);
    m_overlay = std::move(overlay);
    m_isOverlayPending = false;
    takePeaks();
    Q_EMIT overlayChanged();
    return true;
}

void Document::layOver()
{
    m_overlay.reset();
    m_laying.drop();
    m_isOverlayPending = m_recording && prediction();
    if (!m_isOverlayPending)
        return;
    m_laying.start(
        [recording = m_recording, design = m_design, prediction = m_outcome->prediction](const auto&) {
            try {
                return recording->over(*design, prediction);
            } catch (const std::exception&) {
                return std::shared_ptr<Overlay>(); // the edited program does not fit the trace; undo restores it
            }
        },
        [this](std::shared_ptr<Overlay> overlay) {
            m_isOverlayPending = false;
            m_overlay = std::move(overlay);
            takePeaks(); // the members may have become known meanwhile
            Q_EMIT overlayChanged();
        });
    // A small one is there within a frame, so that the lanes do not flicker.
    const QSignalBlocker blocker(this); // show() emits the signals once everything is up to date
    if (m_overlayPatience > 0)
        m_laying.finishWithin(m_overlayPatience);
}

void Document::takePeaks()
{
    if (!m_overlay || !prediction()->memoryOfMembers)
        return;
    std::vector<Bytes> peaks;
    for (const DeviceMetrics& device : prediction()->metrics.devices)
        peaks.push_back(device.peakBytes);
    takePredictedPeaks(m_overlay->comparison, peaks);
}

std::optional<PendingMemory> Document::pendingMemory() const
{
    if (!prediction() || !isMemoryPending(design(), *prediction()))
        return std::nullopt;
    if (!unplaced().empty())
        return PendingMemory{QStringLiteral("–"), tr("Known once every block has a place")};
    if (!m_outcome->whyNoMembers.isEmpty())
        return PendingMemory{QStringLiteral("–"), m_outcome->whyNoMembers};
    return PendingMemory{QStringLiteral("…"), tr("What the members of the groups hold is being worked out")};
}

void Document::setMembers(const std::shared_ptr<const Design>& of, const MemberPredictor::Members& members)
{
    if (of != m_design || !prediction() || prediction()->memoryOfMembers)
        return;
    auto known = std::make_shared<Prediction>(*prediction());
    known->timeline.memory.resize(known->program.devices.size());
    takeMembers(*known, members.prediction, members.stages->stages);
    m_outcome->before = std::exchange(m_outcome->prediction, std::move(known));
    m_outcome->ranges.reset();
    takePeaks();
    Q_EMIT memoryChanged();
    if (m_overlay)
        Q_EMIT overlayChanged();
}

void Document::setNoMembers(const std::shared_ptr<const Design>& of, const QString& why)
{
    if (of != m_design || !prediction() || prediction()->memoryOfMembers)
        return;
    m_outcome->whyNoMembers = why;
    Q_EMIT memoryChanged();
}

void Document::setSide(Side side)
{
    const Side before = this->side();
    m_side = side;
    if (this->side() != before)
        Q_EMIT sideChanged();
}

void Document::clearOverlay()
{
    if (!std::exchange(m_recording, nullptr))
        return;
    layOver();
    Q_EMIT overlayChanged();
}

} // namespace pipewright

#include "moc_document.cpp"
