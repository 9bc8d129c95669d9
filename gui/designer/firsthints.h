// SPDX-License-Identifier: GPL-3.0-or-later
// Three hints for new users, shown where they apply: drag a block, click idle time, run. Each disappears when the
// action was done or its cross is clicked, and does not return in later sessions. They are shown over the lanes and
// pass on all clicks except those on the cross.
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

    /// `run`: the button that the third hint points at. Finished hints are stored in `settings`, which must outlive
    /// this.
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
    /// The middle of the bubble in its parent's coordinates; false when it has no place.
    bool placeOf(Hint hint, QPoint* middle) const;
    void remember();

    TimelineView& m_timeline;
    QWidget& m_run;
    QSettings& m_settings;
    std::array<Shown, hintCount> m_shown{};
    bool m_dragged = false; ///< a block was just held over a lane
};

} // namespace pipewright
