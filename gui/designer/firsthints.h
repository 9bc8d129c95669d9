// SPDX-License-Identifier: GPL-3.0-or-later
// Three hints for the first minute, where they apply: drag a block, click idle time, run. Each disappears when
// that was done, or by a click on its cross, and does not come back in later sessions. They lie over the lanes and pass
// every click on except the one on the cross.
#pragma once

#include <QObject>

#include <array>
#include <utility>

class QSettings;
class QToolButton;
class QWidget;

namespace pipewright {

class TimelineView;

class FirstHints : public QObject {
    Q_OBJECT

public:
    enum Hint { Drag, Idle, Run };
    static constexpr int hintCount = 3;

    /// `run`: the button that the third points at. What is done is kept in `settings`, which outlives this.
    FirstHints(TimelineView& timeline, QWidget& run, QSettings& settings, QObject* parent);
    bool isShown(Hint hint) const;
    QWidget* bubble(Hint hint) const; ///< null once done
    QToolButton* cross(Hint hint) const;
    void finish(Hint hint);
    void startOver(); ///< all three again
    void place();     ///< after what they point at has moved

Q_SIGNALS:
    void runHintShown(bool shown); ///< or gone: what lies below the button may make room

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Shown {
        QWidget* bubble = nullptr;
        QToolButton* cross = nullptr;
    };
    void make(Hint hint);
    /// In the coordinates of the bubble's parent, its middle; nothing where there is no place for it.
    bool placeOf(Hint hint, QPoint* middle) const;
    void remember();

    TimelineView& m_timeline;
    QWidget& m_run;
    QSettings& m_settings;
    std::array<Shown, hintCount> m_shown{};
    bool m_dragged = false; ///< something was held over a lane just now
};

} // namespace pipewright
