// SPDX-License-Identifier: GPL-3.0-or-later
// The editor's behaviour; its layout is in buildingblockeditorlayout.cpp.
#include "gui/buildingblock/buildingblockeditor.h"

#include "core/buildingblock/lifespan.h"
#include "core/buildingblock/publishedblocklist.h"
#include "core/design/redesign.h"
#include "core/predict/bubblerates.h"
#include "gui/buildingblock/buildingblockcells.h"
#include "gui/buildingblock/buildingblockgrid.h"
#include "gui/buildingblock/buildingblockpreview.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/words.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QUndoCommand>

#include <algorithm>

namespace pipewright {

namespace {

/// The device names of the lanes, for as many devices as the block has.
QStringList namesOfDevices(const Design& design, int devices)
{
    QStringList names;
    for (int device = 0; device < devices; ++device)
        names << deviceLabel(design, device);
    return names;
}

} // namespace

class BuildingBlockEditor::Command : public QUndoCommand {
public:
    Command(BuildingBlockEditor& editor, RepeatedBlock after, const QString& text)
        : QUndoCommand(text), m_editor(editor), m_before(editor.m_block), m_after(std::move(after))
    {
    }
    void undo() override { apply(m_before); }
    void redo() override { apply(m_after); }

private:
    void apply(const RepeatedBlock& block)
    {
        m_editor.m_block = block;
        m_editor.showBlock();
    }
    BuildingBlockEditor& m_editor;
    const RepeatedBlock m_before, m_after;
};

void BuildingBlockEditor::edit(RepeatedBlock after, const QString& what)
{
    if (after == m_block)
        showBlock();
    else
        m_edits.push(new Command(*this, std::move(after), what));
}

void BuildingBlockEditor::takeForm(const QString& family)
{
    const Schedule& schedule = m_document.design().schedule;
    RepeatedBlock after = m_block;
    after.block = *blockOfFamily(family.toStdString(), std::max(1, schedule.devices()), after.microbatches);
    const QString name = QString::fromStdString(after.block.name);
    edit(std::move(after), tr("Start from %1").arg(name));
}

void BuildingBlockEditor::takePresent()
{
    const Design& design = m_document.design();
    m_block = design.buildingBlock.value_or(RepeatedBlock{{}, std::max(1, design.schedule.microbatches), true});
    m_block.block =
        blockOf(design).value_or(*blockOfFamily("zb-h1", std::max(1, design.schedule.devices()), m_block.microbatches));
    m_edits.clear();
    showBlock();
}

void BuildingBlockEditor::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    if (m_edits.count() == 0)
        takePresent(); // there are no edits that could be lost
    m_grid->setFocus();
}

RepeatedBlock BuildingBlockEditor::shown() const
{
    RepeatedBlock shown = m_block;
    shown.block = m_grid->shown();
    return shown;
}

void BuildingBlockEditor::showBlock()
{
    const QSignalBlocker quiet[] = {QSignalBlocker(m_interval), QSignalBlocker(m_microbatches),
                                    QSignalBlocker(m_backward), QSignalBlocker(m_reorder), QSignalBlocker(m_form)};
    m_interval->setValue(m_block.block.interval);
    m_microbatches->setValue(m_block.microbatches);
    m_backward->setCurrentIndex(m_block.block.backward == BackwardStyle::Split ? 1 : 0);
    m_reorder->setChecked(m_block.reorder);
    // The list names a published block only while the block equals it.
    const int devices = m_block.block.devices();
    int form = -1;
    for (int i = 0; i < m_form->count(); ++i)
        if (blockOfFamily(m_form->itemData(i).toString().toStdString(), devices, m_block.microbatches) == m_block.block)
            form = i;
    m_form->setCurrentIndex(form);
    m_grid->setBlock(m_block.block, namesOfDevices(m_document.design(), devices));
    showShown();
}

void BuildingBlockEditor::showShown()
{
    m_cells->setBlock(m_grid->shown(), namesOfDevices(m_document.design(), m_grid->shown().devices()));
    m_scroll->setMaximumHeight(m_grid->greatestHeight()); // the results get the rest of a large window
    showPass();
    predictShown();
}

void BuildingBlockEditor::showPass()
{
    const int pass = m_grid->selectedPass();
    const BuildingBlock& block = m_grid->shown();
    const QSignalBlocker quietStart(m_start), quietDevice(m_device);
    m_device->setRange(0, std::max(0, block.devices() - 1));
    if (pass >= 0) {
        const BuildingBlock::Pass& shown = block.passes[pass];
        m_passName->setText(m_grid->nameOfPass(pass));
        m_start->setValue(shown.start);
        m_device->setValue(block.deviceOfStage[shown.stage]);
    }
    m_start->setEnabled(pass >= 0);
    m_device->setEnabled(pass >= 0);
}

void BuildingBlockEditor::predictShown()
{
    m_predicting = true;
    m_work.start(
        [base = m_document.design(), repeated = shown()](const auto&) {
            Outcome outcome;
            try {
                outcome.faults = checkBlock(repeated.block);
                outcome.metrics = predict(withSchedule(base, pipewright::unroll(repeated))).metrics;
                outcome.good = true;
            } catch (const Error& error) {
                outcome.faults = error.diagnostics();
            }
            return outcome;
        },
        [this](const Outcome& outcome) { showOutcome(outcome); });
}

void BuildingBlockEditor::showOutcome(const Outcome& outcome)
{
    m_predicting = false;
    const BuildingBlock& block = m_grid->shown();
    const std::vector<int> bound = liveBound(block);
    const std::vector<int> work = workPerInterval(block);
    const int most = *std::max_element(bound.begin(), bound.end());
    const int busiest = *std::max_element(work.begin(), work.end());
    const double chunks = double(block.stages()) / std::max(1, block.devices());
    std::vector<Fact> facts{
        {tr("work per interval"), tr("%1 of %2 units").arg(busiest).arg(block.interval),
         tr("Busiest device; less than all is a bubble that returns with every microbatch"),
         busiest == block.interval ? Tone::Good : Tone::Plain},
        {tr("memory bound"), tr("%1 chunks = %2").arg(most).arg(multipleText(most / chunks)),
         tr("Sum of ⌈lifespan / interval⌉ over the stages of the fullest device; × counts microbatches on one device"),
         Tone::Plain}};
    if (outcome.good) {
        const Metrics& metrics = outcome.metrics;
        const QString source = tr("Predicted for the unrolled schedule of %1 microbatches").arg(m_block.microbatches);
        const int fullest = fullestDevice(metrics);
        facts.push_back({tr("makespan"), durationText(metrics.makespan), source, Tone::Plain});
        facts.push_back({tr("bubble"), percentText(metrics.rateMakespan),
                         QString::fromStdString(describe(rateOfMakespan)) + QLatin1Char('\n') + source, Tone::Plain});
        if (fullest >= 0) {
            const DeviceMetrics& device = metrics.devices[fullest];
            facts.push_back({tr("live at most"), multipleText(device.peakActivations), source, Tone::Plain});
            facts.push_back({tr("peak memory"), sizeText(device.peakBytes), source, Tone::Plain});
        }
        if (const Prediction* present = m_document.prediction(); present && present->metrics.makespan > 0) {
            const double change =
                double(metrics.makespan - present->metrics.makespan) / double(present->metrics.makespan);
            facts.push_back({tr("against the present"), signedPercent(change),
                             tr("Makespan against the schedule in the timeline"),
                             change < 0   ? Tone::Good
                             : change > 0 ? Tone::Bad
                                          : Tone::Dim});
        }
    }
    m_facts->setFacts(facts);
    m_unroll->setEnabled(outcome.good);
    showFaults(outcome.faults);
    Q_EMIT predicted();
}

void BuildingBlockEditor::showFaults(const Diagnostics& diagnostics)
{
    constexpr std::size_t most = 3;
    QStringList lines;
    for (std::size_t i = 0; i < diagnostics.size() && i < most; ++i)
        lines << proseText(diagnostics[i]);
    if (diagnostics.size() > most)
        lines << tr("and %1 more").arg(diagnostics.size() - most);
    m_faults->setText(lines.isEmpty() ? tr("✓ Repeats without collision, and every pass has its data.")
                                      : lines.join(QLatin1Char('\n')));
    setTone(m_faults, hasErrors(diagnostics) ? Tone::Bad : diagnostics.empty() ? Tone::Good : Tone::Plain);
}

QString BuildingBlockEditor::faults() const
{
    return m_faults->text();
}

void BuildingBlockEditor::unroll()
{
    try {
        Design design = withSchedule(m_document.design(), pipewright::unroll(m_block));
        design.buildingBlock = m_block;
        m_document.replaceDesign(std::move(design),
                                 tr("Unroll the building block %1").arg(QString::fromStdString(m_block.block.name)));
    } catch (const Error& error) {
        showFaults(error.diagnostics());
    }
}

} // namespace pipewright

#include "moc_buildingblockeditor.cpp"
