// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document.h"

#include "core/formats/designfile.h"
#include "core/predict/completion.h"
#include "core/program/compile.h"
#include "core/program/transferorder.h"
#include "core/schedule/ripple.h"
#include "core/schedule/validate.h"

#include <QElapsedTimer>
#include <QFile>
#include <QUndoCommand>

#include <algorithm>
#include <map>

namespace pipewright {

// Holds both designs, so undoing restores exactly and needs no inverse of any edit.
class DesignCommand : public QUndoCommand {
public:
    DesignCommand(Document& document, Design after, const QString& text)
        : QUndoCommand(text), m_document(document), m_before(document.design()), m_after(std::move(after))
    {
    }
    void undo() override { m_document.apply(m_before); }
    void redo() override { m_document.apply(m_after); }

private:
    Document& m_document;
    const Design m_before, m_after;
};

namespace {

QString text(const Block& block)
{
    return QString::fromStdString(toString(block));
}

// Blocks know nothing of the order that is stated of transfers; compiling says whether the two agree.
Document::Edit checked(Document::Edit edit, const Design& present)
{
    if (hasErrors(edit.diagnostics) || edit.design.schedule.transferOrder.empty())
        return edit;
    try {
        (void)compile(edit.design.schedule, edit.design.costs, edit.design.dataflow, {.allowMissing = true});
    } catch (const Error& error) {
        edit.diagnostics = error.diagnostics();
        edit.design = present;
    }
    return edit;
}

bool isSqlite(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) && file.read(15) == "SQLite format 3";
}

} // namespace

QString deviceLabel(const Design& design, int device)
{
    // A cluster of CPU threads is not a cluster of GPUs, whatever else its devices are called.
    const bool known = device >= 0 && static_cast<std::size_t>(device) < design.cluster.devices.size();
    const QString name =
        known ? QString::fromStdString(design.cluster.devices[static_cast<std::size_t>(device)].name) : QString();
    const bool cpu = name.contains(QLatin1String("CPU"), Qt::CaseInsensitive) ||
                     name.contains(QLatin1String("thread"), Qt::CaseInsensitive);
    return QStringLiteral("%1 %2").arg(cpu ? QStringLiteral("CPU") : QStringLiteral("GPU")).arg(device);
}

Document::Document(QObject* parent) : QObject(parent)
{
    // Every step holds two designs; a few hundred steps are more than anybody retraces.
    m_undoStack.setUndoLimit(300);
}

void Document::open(const QString& path)
{
    // A recording carries the design that it ran.
    if (isSqlite(path)) {
        reset(TraceReader(path.toStdString()).design());
        setOverlay(path);
        return;
    }
    reset(readDesign(path.toStdString()), path);
}

void Document::save(const QString& path)
{
    writeDesign(m_design, path.toStdString(), true);
    m_undoStack.setClean();
    if (m_path != path) {
        m_path = path;
        Q_EMIT pathChanged();
    }
}

void Document::reset(Design design, const QString& path)
{
    const bool hadOverlay = m_overlay != nullptr;
    m_undoStack.clear();
    m_overlay.reset();
    m_overlayPath.clear();
    select(std::nullopt);
    apply(std::move(design));
    m_path = path;
    Q_EMIT pathChanged();
    if (hadOverlay)
        Q_EMIT overlayChanged();
}

void Document::apply(Design design)
{
    m_design = std::move(design);
    m_prediction.reset();
    QElapsedTimer timer;
    timer.start();
    try {
        m_prediction = std::make_shared<const Prediction>(predictPlaced(m_design));
        m_diagnostics.clear();
    } catch (const Error& error) {
        m_diagnostics = error.diagnostics();
    }
    m_evaluationMilliseconds = static_cast<double>(timer.nsecsElapsed()) / 1e6;

    const bool hadOverlay = m_overlay != nullptr;
    const bool hasOverlay = !m_overlayPath.isEmpty() && refreshOverlay();
    // A block that an edit removed for good (another family, fewer microbatches) cannot stay selected; one
    // that went back to the tray can.
    const auto inTray = [this](const Block& block) {
        const std::vector<Block> tray = unplacedBlocks(m_design.schedule);
        return std::find(tray.begin(), tray.end(), block) != tray.end();
    };
    const bool lostSelection =
        m_selection && find(m_design.schedule, *m_selection).device < 0 && !inTray(*m_selection);
    if (lostSelection)
        m_selection.reset();
    Q_EMIT designChanged();
    if (lostSelection)
        Q_EMIT selectionChanged();
    if (hadOverlay || hasOverlay)
        Q_EMIT overlayChanged();
}

Document::Edit Document::tryMoveBlock(const Block& block, int index) const
{
    EditResult result = pipewright::moveBlock(m_design.schedule, block, index, m_design.dataflow.skips);
    Edit edit{m_design, std::move(result.diagnostics),
              tr("Move %1 on %2").arg(text(block), deviceLabel(m_design, find(m_design.schedule, block).device))};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return checked(std::move(edit), m_design);
}

Document::Edit Document::tryReorder(int device, std::span<const std::uint32_t> positions, const QString& text) const
{
    return reordered(m_design, device, positions, text);
}

Document::Edit Document::tryMoveStage(int stage, int device, int replica) const
{
    return withStageMoved(m_design, m_prediction.get(), stage, device, replica);
}

Document::Edit Document::tryPlaceBlock(const Block& block, int index) const
{
    return withBlockPlaced(m_design, block, index);
}

Document::Edit Document::reordered(const Design& design, int device, std::span<const std::uint32_t> positions, const QString& text)
{
    EditResult result = reorderDevice(design.schedule, device, positions, design.dataflow.skips);
    Edit edit{design, std::move(result.diagnostics), text};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return checked(std::move(edit), design);
}

Document::Edit Document::withStageMoved(const Design& design, const Prediction* prediction, int stage, int device, int replica)
{
    std::map<Block, Nanoseconds> starts;
    if (prediction) {
        const Program& program = prediction->program;
        for (std::size_t i = 0; i < program.tasks.size(); ++i) {
            if (program.tasks[i].kind == TaskKind::Compute)
                starts.emplace(program.tasks[i].block(), prediction->timeline.start[i]);
        }
    }
    const auto startOf = [&starts](const Block& block) {
        const auto it = starts.find(block);
        return it == starts.end() ? Nanoseconds{0} : it->second;
    };
    EditResult result = pipewright::moveStage(design.schedule, stage, device, startOf, design.dataflow.skips, replica);
    Edit edit{design, std::move(result.diagnostics), tr("Move stage %1 to %2").arg(stage).arg(deviceLabel(design, device))};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return checked(std::move(edit), design);
}

Document::Edit Document::withBlockPlaced(const Design& design, const Block& block, int index)
{
    EditResult result = pipewright::placeBlock(design.schedule, block, index, design.dataflow.skips);
    Edit edit{design, std::move(result.diagnostics), tr("Place %1").arg(text(block))};
    if (!hasErrors(edit.diagnostics)) {
        edit.design.schedule = std::move(result.schedule);
        edit.text = tr("Place %1 on %2").arg(text(block), deviceLabel(design, find(edit.design.schedule, block).device));
    }
    return checked(std::move(edit), design);
}

Document::Edit Document::tryUnplace(const std::vector<Block>& blocks) const
{
    EditResult result = unplaceBlocks(m_design.schedule, blocks);
    Edit edit{m_design, std::move(result.diagnostics),
              blocks.size() == 1 ? tr("Return %1 to the tray").arg(text(blocks.front()))
                                 : tr("Return %n blocks to the tray", nullptr, static_cast<int>(blocks.size()))};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return edit;
}

Document::Edit Document::tryPin(const Block& block, Nanoseconds earliestStart) const
{
    EditResult result = pinBlock(m_design.schedule, block, earliestStart);
    Edit edit{m_design, std::move(result.diagnostics),
              earliestStart == 0 ? tr("Unpin %1").arg(text(block)) : tr("Pin %1").arg(text(block))};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return edit;
}

Document::Edit Document::tryRipple(const Block& block, int places) const
{
    EditResult result = rippleBlock(m_design.schedule, block, places, m_design.dataflow.skips);
    Edit edit{m_design, std::move(result.diagnostics), tr("Move %1 and the rest of microbatch %2").arg(text(block)).arg(block.microbatch)};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return checked(std::move(edit), m_design);
}

Document::Edit Document::tryComplete() const
{
    Completion completion = completeSchedule(m_design);
    Edit edit{m_design, std::move(completion.diagnostics),
              completion.style.empty() ? tr("Complete the rest") : tr("Complete the rest as %1").arg(QString::fromStdString(completion.style))};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(completion.schedule);
    return checked(std::move(edit), m_design);
}

Document::Edit Document::tryMoveTransfer(int device, int from, int to) const
{
    if (!m_prediction)
        return {m_design, m_diagnostics, {}};
    const std::vector<IssuedTransfer> list = transfersOf(m_prediction->program, device);
    const bool known = from >= 0 && static_cast<std::size_t>(from) < list.size();
    EditResult result = moveTransfer(m_design, m_prediction->program, device, from, to);
    Edit edit{m_design, std::move(result.diagnostics),
              known ? tr("Move the transfer of %1 to %2")
                          .arg(text(list[static_cast<std::size_t>(from)].transfer.producer),
                               deviceLabel(m_design, list[static_cast<std::size_t>(from)].transfer.destination))
                    : QString()};
    if (!hasErrors(edit.diagnostics))
        edit.design.schedule = std::move(result.schedule);
    return edit;
}

Document::Edit Document::tryForgetTransfer(const Transfer& transfer) const
{
    Edit edit{m_design, {}, tr("Let %1 to %2 go where its data puts it").arg(text(transfer.producer), deviceLabel(m_design, transfer.destination))};
    edit.design.schedule = withoutStatedOrder(m_design.schedule, transfer);
    return edit;
}

Diagnostics Document::commit(Edit edit)
{
    if (!hasErrors(edit.diagnostics) && !(edit.design == m_design))
        m_undoStack.push(new DesignCommand(*this, std::move(edit.design), edit.text));
    return std::move(edit.diagnostics);
}

Diagnostics Document::moveBlock(const Block& block, int index)
{
    return commit(tryMoveBlock(block, index));
}

Diagnostics Document::moveStage(int stage, int device, int replica)
{
    return commit(tryMoveStage(stage, device, replica));
}

Diagnostics Document::placeBlock(const Block& block, int index)
{
    return commit(tryPlaceBlock(block, index));
}

Diagnostics Document::unplace(const std::vector<Block>& blocks)
{
    return commit(tryUnplace(blocks));
}

Diagnostics Document::pin(const Block& block, Nanoseconds earliestStart)
{
    return commit(tryPin(block, earliestStart));
}

Diagnostics Document::complete()
{
    return commit(tryComplete());
}

void Document::replaceDesign(Design design, const QString& text)
{
    commit({std::move(design), {}, text});
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
    if (!m_prediction)
        throw Error("overlay", "there is no prediction to lay a trace over", "resolve the conflicts of the schedule first");
    const QString before = m_overlayPath;
    const int stepBefore = m_overlayStep;
    m_overlayPath = tracePath;
    m_overlayStep = step;
    try {
        const TraceReader trace(tracePath.toStdString());
        auto overlay = std::make_unique<Overlay>();
        overlay->path = tracePath;
        const Program& program = m_prediction->program;
        StepVariation variation = stepVariation(trace, program);
        overlay->steps = trace.steps();
        overlay->lengths = stepLengths(overlay->steps);
        overlay->medianStep = trace.medianStep();
        overlay->step = m_overlayStep == medianStep ? overlay->medianStep : m_overlayStep;
        overlay->measured = overlay->step == typicalStep ? std::move(variation.typical)
                                                         : trace.timeline(program, overlay->step);
        overlay->comparison = compare(program, m_prediction->timeline, overlay->measured, trace.peakBytes());
        overlay->explanation = explain(program, m_design.costs, m_prediction->timeline, overlay->measured);
        overlay->spread = std::move(variation.spread);
        overlay->resultJson = trace.resultJson();
        m_overlay = std::move(overlay);
    } catch (...) {
        m_overlayPath = before;
        m_overlayStep = stepBefore;
        throw;
    }
    Q_EMIT overlayChanged();
}

bool Document::refreshOverlay()
{
    const std::unique_ptr<Overlay> before = std::move(m_overlay);
    if (!m_prediction)
        return false;
    try {
        const QSignalBlocker blocker(this); // apply() says what changed, once everything is up to date
        setOverlay(m_overlayPath, m_overlayStep);
        return true;
    } catch (const Error&) {
        return false; // of another program since the edit; undoing brings it back
    }
}

void Document::clearOverlay()
{
    m_overlayPath.clear();
    if (m_overlay) {
        m_overlay.reset();
        Q_EMIT overlayChanged();
    }
}

} // namespace pipewright
