// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/runerrors.h"

#include "core/base/beyondprediction.h"
#include "gui/trace/causetable.h"
#include "gui/trace/errortable.h"
#include "gui/trace/notelist.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"
#include "traces/analysis/causetext.h"
#include "traces/analysis/durationdifference.h"
#include "traces/analysis/runtorun.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTabWidget>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace pipewright {

namespace {

constexpr double notable = 0.05; ///< errors beyond this are red

/// A combo box whose wheel events scroll the surrounding panel instead of choosing another step.
class StepPicker : public QComboBox {
public:
    using QComboBox::QComboBox;

protected:
    void wheelEvent(QWheelEvent* event) override
    {
        if (hasFocus())
            QComboBox::wheelEvent(event);
        else
            event->ignore();
    }
};

/// The makespans, the largest cause, and the slowest device when one stands out.
QString verdictOf(const Design& design, const Explanation& explanation)
{
    const auto cause = std::find_if(explanation.causes.begin(), explanation.causes.end(),
                                    [](const pipewright::Cause& c) { return c.contribution != 0; });
    if (cause == explanation.causes.end())
        return RunErrors::tr("As predicted.");
    const auto label = [&](int device) { return deviceLabel(design, device).toStdString(); };
    const QString compared = comparedText(explanation.measured, explanation.predicted);
    QString text = RunErrors::tr("%1; the largest cause: %2, %3 alone.")
                       .arg(compared.left(1).toUpper() + compared.mid(1),
                            QString::fromStdString(shortText(*cause, label)), signedDuration(cause->contribution));
    if (explanation.straggler >= 0)
        text += RunErrors::tr(" The slowest is %1: its blocks take %2 times the median device's.")
                    .arg(deviceLabel(design, explanation.straggler))
                    .arg(explanation.devices[explanation.straggler].slowness, 0, 'f', 2);
    return text;
}

Tone toneOf(double error)
{
    return std::fabs(error) > notable ? Tone::Bad : Tone::Plain;
}

} // namespace

RunErrors::RunErrors(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_heading(makeHeading({}, this)), m_step(new StepPicker(this)),
      m_verdict(makeCaption({}, TextSize::Normal, this)), m_facts(new FactList(this)), m_tabs(new QTabWidget(this)),
      m_causes(new CauseTable(document, this)), m_table(new ErrorTable(document, this)),
      m_notes(new NoteList(
          [this] {
              TraceNote note;
              if (m_stretch)
                  std::tie(note.start, note.end) = m_stretch();
              if (const Document::Overlay* overlay = m_document.overlay())
                  note.step = overlay->step;
              return note;
          },
          this))
{
    setAccessibleName(tr("Predicted against run"));
    build();
    connect(&m_document, &Document::overlayChanged, this, &RunErrors::refresh);
    connect(&m_document, &Document::designChanged, this, &RunErrors::refresh);
    refresh();
}

void RunErrors::build()
{
    m_tabs->setDocumentMode(true);
    m_tabs->setAccessibleName(tr("Causes, blocks and notes of the run"));
    m_tabs->addTab(m_causes, tr("causes"));
    m_tabs->addTab(m_table, tr("blocks"));
    m_tabs->addTab(m_notes, tr("notes"));
    m_heading->setWordWrap(true); // the name of the recording's file may be long
    m_heading->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_verdict->setWordWrap(true);
    m_verdict->setAccessibleName(tr("Why the step took as long as it did"));
    m_step->setAccessibleName(tr("Step of the run"));
    m_step->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_step->setFocusPolicy(Qt::TabFocus);
    auto* report = new QPushButton(tr("Report…"), this);
    report->setToolTip(tr("This comparison as one HTML page with pictures, numbers, causes and notes"));
    auto* query = new QPushButton(tr("SQL…"), this);
    query->setToolTip(tr("Ask the recording with SQL"));
    auto* first = new QPushButton(tr("First run…"), this);
    first->setToolTip(tr("The run that the costs were measured in: how much two runs differ by themselves"));
    connect(first, &QPushButton::clicked, this, &RunErrors::chooseFirstRun);
    auto* buttons = new QHBoxLayout;
    for (QPushButton* button : {report, query, first}) {
        button->setFocusPolicy(Qt::TabFocus);
        buttons->addWidget(button);
    }
    buttons->addStretch(1);
    connect(report, &QPushButton::clicked, this, &RunErrors::reportRequested);
    connect(query, &QPushButton::clicked, this, &RunErrors::queryRequested);
    connect(m_step, qOverload<int>(&QComboBox::activated), this, &RunErrors::chooseStep);
    connect(m_causes, &CauseTable::chosen, this, &RunErrors::blocksChosen);
    connect(m_notes, &NoteList::failed, this, &RunErrors::failed);
    connect(m_notes, &NoteList::chosen, this, [this](const TraceNote& note) {
        const Document::Overlay* overlay = m_document.overlay();
        if (overlay && note.step >= 0 && note.step != overlay->step) {
            try {
                m_document.setOverlay(overlay->path, note.step);
            } catch (const Error& error) {
                Q_EMIT failed(QString::fromUtf8(error.what()));
                return;
            }
        }
        Q_EMIT stretchChosen(note.start, note.end);
    });
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 10);
    layout->addWidget(m_heading);
    layout->addWidget(m_step);
    layout->addWidget(m_verdict);
    layout->addWidget(m_facts);
    layout->addLayout(buttons);
}

QString RunErrors::verdict() const
{
    return m_verdict->text();
}

void RunErrors::fillSteps()
{
    const Document::Overlay& overlay = *m_document.overlay();
    const QSignalBlocker quiet(m_step);
    m_step->clear();
    const auto lengthOf = [&](int step) {
        for (const StepRecord& record : overlay.steps)
            if (record.step == step)
                return durationText(record.end - record.start);
        return QString();
    };
    m_step->addItem(tr("median: step %1, %2").arg(overlay.medianStep).arg(lengthOf(overlay.medianStep)),
                    Document::medianStep);
    m_step->addItem(tr("typical: each block's median"), Document::typicalStep);
    const std::vector<StepLengths::Outlier>& outliers = overlay.lengths.outliers;
    for (const StepRecord& record : overlay.steps) {
        const bool outlier = std::any_of(outliers.begin(), outliers.end(),
                                         [&](const StepLengths::Outlier& each) { return each.step == record.step; });
        m_step->addItem((outlier ? tr("step %1, %2, an outlier") : tr("step %1, %2"))
                            .arg(record.step)
                            .arg(durationText(record.end - record.start)),
                        record.step);
    }
    m_step->setCurrentIndex(
        m_step->findData(overlay.step == overlay.medianStep ? int(Document::medianStep) : overlay.step));
    const StepLengths& lengths = overlay.lengths;
    m_step->setToolTip(lengths.steps > 1 ? tr("%1 steps after the first: %2 to %3, median %4, eight of ten within %5")
                                               .arg(lengths.steps)
                                               .arg(durationText(lengths.shortest), durationText(lengths.longest),
                                                    durationText(lengths.median), durationText(lengths.spread))
                                         : tr("One step was recorded"));
}

void RunErrors::chooseStep(int index)
{
    if (!m_document.overlay())
        return;
    const QString path = m_document.overlay()->path;
    try {
        m_document.setOverlay(path, m_step->itemData(index).toInt());
    } catch (const Error& error) {
        fillSteps();
        Q_EMIT failed(QString::fromUtf8(error.what()));
    }
}

void RunErrors::chooseFirstRun()
{
    const Document::Overlay* overlay = m_document.overlay();
    const QString path = QFileDialog::getOpenFileName(this, tr("The run that the costs were measured in"),
                                                      overlay ? QFileInfo(overlay->path).absolutePath() : QString(),
                                                      tr("Recordings (*.db);;All files (*)"));
    if (!path.isEmpty())
        setFirstRun(path);
}

void RunErrors::setFirstRun(const QString& path)
{
    m_firstRun = path;
    refresh();
}

std::vector<Fact> RunErrors::factsOfFirstRun(const Comparison& comparison) const
{
    if (m_firstRun.isEmpty() || !m_document.prediction())
        return {};
    const QString name = QFileInfo(m_firstRun).completeBaseName();
    try {
        const RunToRun runs = runToRun(m_firstRun.toStdString(), m_document.prediction()->program, comparison);
        return {{tr("from run to run"), signedPercent(runs.change),
                 tr("This run's makespan against that of %1, %2, without any prediction: an error below that is no "
                    "error of the costs")
                     .arg(name, durationText(runs.first)),
                 Tone::Plain},
                {tr("difference of %1").arg(name),
                 signedPercent(beyondPrediction(static_cast<double>(runs.first),
                                                static_cast<double>(comparison.predictedMakespan))),
                 tr("Its makespan less the predicted, as a share of the predicted"), Tone::Plain}};
    } catch (const std::exception& error) {
        return {{tr("from run to run"), tr("not known"), proseText(error), Tone::Bad}};
    }
}

void RunErrors::refresh()
{
    const Document::Overlay* overlay = m_document.overlay();
    setVisible(overlay != nullptr);
    m_tabs->setVisible(overlay != nullptr);
    const QString path = overlay || m_document.isOverlayPending() ? m_document.overlayPath() : QString();
    if (path != m_notesOf) {
        m_notesOf = path;
        m_notes->setTrace(path);
    }
    if (!overlay)
        return;
    fillSteps();
    m_verdict->setText(verdictOf(m_document.design(), overlay->explanation));
    const Comparison& comparison = overlay->comparison;
    m_heading->setText(tr("Predicted → measured, %1").arg(TraceWindow::titleOf(overlay->path)));
    m_heading->setToolTip(overlay->path);
    const QString signs = tr("Measured less predicted, as a share of the predicted");
    const double makespan = beyondPrediction(static_cast<double>(comparison.measuredMakespan),
                                             static_cast<double>(comparison.predictedMakespan));
    const double median = m_document.prediction() ? medianBeyond(comparison, m_document.prediction()->timeline) : 0;
    std::vector<Fact> facts{
        {tr("makespan"), pairOfDurations(comparison.predictedMakespan, comparison.measuredMakespan),
         tr("Predicted → measured"), Tone::Plain},
        {tr("difference"), signedPercent(makespan), signs, toneOf(makespan)},
        {tr("block starts, p95"), percentText(comparison.startError.p95),
         tr("By how much 95 of 100 blocks start earlier or later at most, as a share of the measured makespan"),
         toneOf(comparison.startError.p95)},
        {tr("durations, median"), signedPercent(median), tr("Of all blocks. %1").arg(signs), toneOf(median)},
    };
    Bytes worst = 0;
    std::optional<double> worstShare;
    for (const Comparison::Device& device : comparison.devices) {
        if (!device.measuredPeak)
            continue;
        const Bytes difference = *device.measuredPeak - device.predictedPeak;
        if (!worstShare || std::llabs(difference) >= std::llabs(worst)) {
            worst = difference;
            worstShare =
                beyondPrediction(static_cast<double>(*device.measuredPeak), static_cast<double>(device.predictedPeak));
        }
    }
    if (worstShare)
        facts.push_back({tr("peak memory"), worst == 0 ? QStringLiteral("0 B") : signedSize(worst),
                         tr("Of the device where it differs most. %1").arg(signs),
                         worst == 0 ? Tone::Good : toneOf(*worstShare)});
    else
        facts.push_back({tr("peak memory"), tr("not recorded"), tr("The trace holds no memory"), Tone::Plain});
    if (overlay->kernels && overlay->kernels->ofGpus()) {
        const KernelTotals& totals = overlay->kernels->totals;
        const double launching = totals.byEvents > 0 ? double(totals.launching) / double(totals.byEvents) : 0;
        facts.push_back({tr("launch-bound"), percentText(launching),
                         tr("Of the blocks' time: the GPU had nothing of the block to do, since the host had not "
                            "launched the next kernel. %1")
                             .arg(QString::fromStdString(blockTimesText(totals))),
                         toneOf(launching)});
        facts.push_back(
            {tr("recording took"), durationText(totals.overhead),
             tr("CUPTI's own work in this step, part of what was measured: %1 records").arg(totals.overheads),
             Tone::Plain});
    }
    if (overlay->kernels && overlay->kernels->kind() == WorkKind::Operators) {
        const KernelTotals& totals = overlay->kernels->totals;
        facts.push_back({tr("operators ran"),
                         percentText(totals.byEvents > 0 ? double(totals.running) / double(totals.byEvents) : 0),
                         tr("Of the blocks' time: the rest is the framework's own. %1")
                             .arg(QString::fromStdString(blockTimesText(totals))),
                         Tone::Plain});
    }
    for (Fact& fact : factsOfFirstRun(comparison))
        facts.push_back(std::move(fact));
    if (comparison.unmatched > 0)
        facts.push_back({tr("blocks not recorded"), QString::number(comparison.unmatched),
                         tr("The run was cut short or records were dropped"), Tone::Bad});
    m_facts->setFacts(facts);
}

} // namespace pipewright

#include "moc_runerrors.cpp"
