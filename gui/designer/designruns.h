// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of the design: their settings, the start, and what becomes of a recording: it is laid over the design when the
// order is still the one that ran. The run itself is a RunController's.
#pragma once

#include "gui/designer/overlays.h"
#include "gui/run/runcontroller.h"
#include "gui/widgets/latestwork.h"

#include <QElapsedTimer>

namespace pipewright {

class RunSettings;

class DesignRuns : public QObject {
    Q_OBJECT

public:
    /// `program` empty: this binary.
    DesignRuns(const Desk& desk, Overlays& overlays, const QString& folder, const QString& program);

    RunController& controller() { return m_controller; }
    RunSettings* settings() const { return m_settings; } ///< null until asked for
    bool isPossible() const;                             ///< the design could be run now
    void ask(const QWidget& button);                     ///< shows the settings below the button
    void start(const RunChoice& choice);
    void take(const ChildResult& result); ///< of a run that ended, after all others were told
    bool mayEnd();                        ///< asks while a run is under way; false: stay

Q_SIGNALS:
    void started();
    void changed();                     ///< a run started or ended
    void reported(const QString& text); ///< what was done with a recording
    void laidOver();

private:
    void takeSmallDesign();   ///< in place of a model that cannot be trained here
    void showDesign();        ///< in the settings
    bool isOfPresent() const; ///< the last run, of the schedule as it is now
    /// Lays what a run has recorded so far over the lanes.
    void follow(const ChildProgress& progress);

    Desk m_desk;
    Document& m_document;
    Overlays& m_overlays;
    RunController m_controller;
    RunSettings* m_settings = nullptr;
    std::shared_ptr<const Design> m_ran; ///< of the last run
    bool m_isFollowing = false;          ///< its recording is being read
    int m_followedStep = 0;
    qint64 m_pause = 0; ///< milliseconds until it is read again
    QElapsedTimer m_sinceFollowed;
    LatestWork m_following;
};

} // namespace pipewright
