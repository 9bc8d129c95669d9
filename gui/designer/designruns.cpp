// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/designruns.h"

#include "gui/designer/otherwindows.h"
#include "gui/run/runsettings.h"
#include "gui/run/smalldesign.h"
#include "traces/store/tracereader.h"

#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QScreen>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

/// A recording that grows is read at most twice a second, and for a tenth of the time: the run needs the processors.
constexpr qint64 leastPause = 500, pauseOfReading = 9; ///< milliseconds; times what the last reading took

bool hasFinishedStep(const QString& trace)
{
    try {
        return !TraceReader(trace.toStdString()).steps().empty();
    } catch (const std::exception&) { // it ended before anything was recorded
        return false;
    }
}

} // namespace

DesignRuns::DesignRuns(const Desk& desk, Overlays& overlays, const QString& folder, const QString& program)
    : QObject(desk.window), m_desk(desk), m_document(desk.document), m_overlays(overlays), m_controller(folder, program)
{
    connect(&m_controller, &RunController::progressed, this, &DesignRuns::follow);
    connect(&m_document, &Document::designChanged, this, [this] {
        if (m_settings && m_settings->isVisible() && isPossible())
            showDesign();
    });
}

bool DesignRuns::isOfPresent() const
{
    const Schedule &now = m_document.design().schedule, &ran = m_ran->schedule;
    return now.order == ran.order && now.deviceOfStage == ran.deviceOfStage;
}

void DesignRuns::follow(const ChildProgress& progress)
{
    if (m_isFollowing || progress.step < 1 || progress.step == m_followedStep || !m_document.prediction()
        || m_document.isWorking() || !isOfPresent()
        || (m_sinceFollowed.isValid() && m_sinceFollowed.elapsed() < m_pause))
        return;
    struct Read {
        std::shared_ptr<Recording> recording;
        std::shared_ptr<Overlay> overlay; ///< null: no finished step is written yet
        qint64 took = 0;
    };
    m_isFollowing = true;
    m_followedStep = progress.step;
    const auto prediction = m_document.sharedPrediction();
    m_following.start(
        [path = m_controller.trace(), design = m_document.sharedDesign(), prediction](const auto&) {
            QElapsedTimer clock;
            clock.start();
            Read read;
            try {
                read.recording = std::make_shared<Recording>(path, Recording::medianStep);
                read.overlay = read.recording->over(*design, prediction);
            } catch (const std::exception&) {
                read.overlay.reset();
            }
            read.took = clock.elapsed();
            return read;
        },
        [this, prediction](Read read) {
            m_isFollowing = false;
            m_pause = std::max(leastPause, pauseOfReading * read.took);
            m_sinceFollowed.start();
            if (read.overlay)
                m_document.takeOverlay(std::move(read.recording), std::move(read.overlay), prediction.get());
        });
}

bool DesignRuns::isPossible() const
{
    return m_document.unplaced().empty() && !hasErrors(m_document.diagnostics()) && m_document.prediction()
           && !m_controller.isRunning();
}

void DesignRuns::showDesign()
{
    std::vector<Bytes> peaks;
    if (m_document.prediction())
        for (const DeviceMetrics& device : m_document.prediction()->metrics.devices)
            peaks.push_back(device.peakBytes);
    m_settings->setDesign(m_document.sharedDesign(), std::move(peaks));
}

void DesignRuns::ask(const QWidget& button)
{
    if (m_controller.isRunning())
        return; // Cancel is beside it
    if (!m_settings) {
        m_settings = new RunSettings(m_controller.program(), RunChoice::load(m_desk.settings), m_desk.window);
        connect(m_settings, &RunSettings::runWanted, this, &DesignRuns::start);
        connect(m_settings, &RunSettings::smallDesignWanted, this, &DesignRuns::takeSmallDesign);
    }
    showDesign();
    m_settings->adjustSize();
    const QPoint below = button.mapToGlobal(QPoint(button.width(), button.height() + 6));
    const QRect around = button.screen()->availableGeometry();
    const int lowest = around.bottom() - m_settings->sizeHint().height() - 40; // with its frame
    m_settings->move(std::max(around.left(), below.x() - m_settings->width()),
                     std::max(around.top(), std::min(below.y(), lowest)));
    bringUp(*m_settings);
}

void DesignRuns::takeSmallDesign()
{
    m_document.settle();
    m_desk.attempt(tr("The small GPT cannot take this schedule"),
                   [&] { m_document.replaceDesign(smallDesign(m_document.design()), tr("Train a small GPT")); });
}

void DesignRuns::start(const RunChoice& choice)
{
    m_ran = m_document.sharedDesign();
    m_followedStep = 0;
    m_pause = 0;
    if (!m_controller.start(*m_ran, choice))
        return;
    choice.save(m_desk.settings);
    Q_EMIT started();
    Q_EMIT changed();
}

void DesignRuns::take(const ChildResult& result)
{
    Q_EMIT changed();
    m_following.drop();
    m_isFollowing = false;
    const bool whole = result.kind == ChildResult::Done;
    if (!whole && !hasFinishedStep(result.trace))
        return;
    const QString name = QFileInfo(result.trace).fileName();
    if (!isOfPresent()) {
        Q_EMIT reported(
            tr("It ran the schedule as it was before your edits: undo them and overlay %1 to see it.").arg(name));
        return;
    }
    m_desk.attempt(tr("The recording cannot be laid over this design"), [&] {
        m_document.setOverlay(result.trace);
        Q_EMIT reported(whole ? tr("%1 is laid over the lanes.").arg(name)
                              : tr("%1 with the finished steps is laid over the lanes.").arg(name));
        if (const double scale = m_controller.choice().memoryScale; scale != 1)
            Q_EMIT reported(tr("Measured memory is 1/%1 of the design's, as it was run.").arg(std::llround(1 / scale)));
        if (m_controller.choice().calibrate && whole)
            m_overlays.calibrate();
        if (m_document.isOverlayPending()) // over the costs just taken
            connect(&m_document, &Document::overlayChanged, this, &DesignRuns::laidOver, Qt::SingleShotConnection);
        else
            Q_EMIT laidOver();
    });
}

bool DesignRuns::mayEnd()
{
    if (!m_controller.isRunning())
        return true;
    QMessageBox box(QMessageBox::Question, tr("A run is under way"),
                    tr("End the run and close the window? Its finished steps stay in the recording."),
                    QMessageBox::NoButton, m_desk.window);
    QPushButton* end = box.addButton(tr("End the run"), QMessageBox::DestructiveRole);
    box.setDefaultButton(box.addButton(tr("Keep running"), QMessageBox::RejectRole));
    box.exec();
    return box.clickedButton() == end;
}

} // namespace pipewright

#include "moc_designruns.cpp"
