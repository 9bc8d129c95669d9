// SPDX-License-Identifier: GPL-3.0-or-later
// Three hints for new users in a line below the lanes: drag a block, click idle time, run; and, while no run is laid
// over, the recorded example. Each goes when the action was done, all of them with the cross, and none returns in later
// sessions.
#pragma once

#include <QWidget>

#include <array>

class QAction;
class QLabel;
class QSettings;
class QToolButton;

namespace pipewright {

class TimelineView;

class FirstHints : public QWidget {
    Q_OBJECT

public:
    enum Hint { Drag, Idle, Run };
    static constexpr int hintCount = 3;

    /// Finished hints are stored in `settings`, which must outlive this.
    FirstHints(TimelineView& timeline, QAction& recordedRun, QSettings& settings, QWidget* parent);
    bool isShown(Hint hint) const { return !m_steps[hint]->isHidden(); }
    QToolButton* cross() const { return m_cross; }
    QToolButton* recordedButton() const { return m_recorded; }
    void finish(Hint hint);
    void startOver(); ///< all three again

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void refresh();

    QSettings& m_settings;
    std::array<QWidget*, hintCount> m_steps{};
    std::array<QLabel*, hintCount> m_texts{};
    QToolButton* m_recorded;
    QToolButton* m_cross;
    bool m_dragged = false; ///< a block was just held over a lane
};

} // namespace pipewright
