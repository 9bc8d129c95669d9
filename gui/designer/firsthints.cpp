// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/firsthints.h"

#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/theme.h"

#include <QEvent>
#include <QPainter>
#include <QPointer>
#include <QSettings>
#include <QTimer>
#include <QToolButton>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int bubbleHeight = 24, discSize = 16, crossSize = 16;
constexpr int bubbleEdge = 4;
const QString doneKey = QStringLiteral("hints/done");

QString textOf(FirstHints::Hint hint)
{
    switch (hint) {
    case FirstHints::Drag: return FirstHints::tr("Drag a block");
    case FirstHints::Idle: return FirstHints::tr("Click idle time: why?");
    case FirstHints::Run: return FirstHints::tr("Run it here");
    }
    return {};
}

/// As it is called in the settings.
QString keyOf(FirstHints::Hint hint)
{
    switch (hint) {
    case FirstHints::Drag: return QStringLiteral("drag");
    case FirstHints::Idle: return QStringLiteral("idle");
    case FirstHints::Run: return QStringLiteral("run");
    }
    return {};
}

/// A number in a disc and a few words; the background is the text colour, so that it stands out in both themes.
class HintBubble : public QWidget {
public:
    HintBubble(int number, const QString& text, QWidget* parent) : QWidget(parent), m_number(number), m_text(text)
    {
        setAttribute(Qt::WA_TransparentForMouseEvents);
        setAccessibleName(FirstHints::tr("Hint %1: %2").arg(number).arg(text));
        resize(2 * bubbleEdge + discSize + 6 + QFontMetrics(font()).horizontalAdvance(text) + 8 + crossSize,
               bubbleHeight);
    }

protected:
    void paintEvent(QPaintEvent*) override
    {
        const Theme& theme = Theme::of(*this);
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.text);
        painter.drawRoundedRect(rect(), bubbleHeight / 2.0, bubbleHeight / 2.0);
        const QRect disc(bubbleEdge, (bubbleHeight - discSize) / 2, discSize, discSize);
        painter.setBrush(theme.accent);
        painter.drawEllipse(disc);
        painter.setPen(theme.onAccent);
        painter.setFont(Theme::words(TextSize::Small, QFont::DemiBold));
        painter.drawText(disc, Qt::AlignCenter, QString::number(m_number));
        painter.setPen(theme.panel);
        painter.setFont(hintFont());
        painter.drawText(rect().adjusted(disc.right() + 7, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, m_text);
    }

private:
    static QFont hintFont() { return Theme::words(TextSize::Normal, QFont::DemiBold); }
    static QFont font() { return hintFont(); }

    int m_number;
    QString m_text;
};

} // namespace

FirstHints::FirstHints(TimelineView& timeline, QWidget& run, QSettings& settings, QObject* parent)
    : QObject(parent), m_timeline(timeline), m_run(run), m_settings(settings)
{
    const QStringList done = settings.value(doneKey).toStringList();
    for (const Hint hint : {Drag, Idle, Run})
        if (!done.contains(keyOf(hint)))
            make(hint);
    connect(&timeline, &TimelineView::viewRangeChanged, this, &FirstHints::place);
    connect(&timeline, &TimelineView::lanesChanged, this, &FirstHints::place);
    connect(&timeline, &TimelineView::gapClicked, this, [this] { finish(Idle); });
    connect(&timeline, &TimelineView::previewChanged, this, [this] {
        if (m_timeline.isPreviewing())
            m_dragged = true;
        else
            QTimer::singleShot(0, this, [this] { m_dragged = false; }); // the edit follows at once or was refused
    });
    connect(&timeline.document(), &Document::designChanged, this, [this] {
        if (std::exchange(m_dragged, false))
            finish(Drag);
        place();
    });
    timeline.viewport()->installEventFilter(this);
    run.installEventFilter(this);
}

void FirstHints::make(Hint hint)
{
    QWidget* parent = hint == Run ? m_run.window() : m_timeline.viewport();
    Shown& shown = m_shown[hint];
    shown.bubble = new HintBubble(hint + 1, textOf(hint), parent);
    shown.cross = new QToolButton(parent);
    shown.cross->setProperty("hintCross", true);
    shown.cross->setText(QStringLiteral("×"));
    shown.cross->setAccessibleName(tr("Hide the hint: %1").arg(textOf(hint)));
    shown.cross->setToolTip(tr("Hide this hint; the View menu brings all of them back"));
    shown.cross->setFixedSize(crossSize, crossSize);
    shown.cross->setFocusPolicy(Qt::NoFocus);
    shown.cross->setCursor(Qt::ArrowCursor);
    shown.bubble->hide();
    shown.cross->hide();
    connect(shown.cross, &QToolButton::clicked, this, [this, hint] { finish(hint); });
}

bool FirstHints::isShown(Hint hint) const
{
    return m_shown[hint].bubble && !m_shown[hint].bubble->isHidden();
}

QWidget* FirstHints::bubble(Hint hint) const
{
    return m_shown[hint].bubble;
}

QToolButton* FirstHints::cross(Hint hint) const
{
    return m_shown[hint].cross;
}

void FirstHints::finish(Hint hint)
{
    Shown& shown = m_shown[hint];
    if (!shown.bubble)
        return;
    shown.bubble->hide();
    shown.cross->hide();
    shown.bubble->deleteLater();
    shown.cross->deleteLater(); // it may be the one that was clicked
    shown = {};
    remember();
    if (hint == Run)
        Q_EMIT runHintShown(false);
}

void FirstHints::startOver()
{
    for (const Hint hint : {Drag, Idle, Run})
        if (!m_shown[hint].bubble)
            make(hint);
    remember();
    place();
}

void FirstHints::remember()
{
    QStringList done;
    for (const Hint hint : {Drag, Idle, Run})
        if (!m_shown[hint].bubble)
            done << keyOf(hint);
    m_settings.setValue(doneKey, done);
}

bool FirstHints::placeOf(Hint hint, QPoint* middle) const
{
    if (hint == Run) {
        QWidget* window = m_run.window();
        const QPoint below = m_run.mapTo(window, QPoint(m_run.width() / 2, m_run.height()));
        *middle = {below.x(), below.y() + 12 + bubbleHeight / 2};
        return m_run.isVisible() && m_run.isEnabled();
    }
    if (m_timeline.laneCount() == 0)
        return false;
    // Between two lanes, where neither's letters are.
    const int device =
        hint == Drag ? m_timeline.lanes().deviceAt(0) : m_timeline.lanes().deviceAt(m_timeline.laneCount() - 1);
    const std::vector<Block> blocks = m_timeline.visibleBlocks(device);
    const QRect lane = m_timeline.rectOfLane(device);
    if (blocks.empty() || lane.height() < bubbleHeight)
        return false;
    if (hint == Drag) {
        *middle = {m_timeline.rectOfBlock(blocks[blocks.size() / 2]).center().x(), lane.bottom()};
        return true;
    }
    const QRect first = m_timeline.rectOfBlock(blocks.front());
    *middle = {(TimelineView::plotLeft() + first.left()) / 2, lane.top()};
    return first.left() - TimelineView::plotLeft() > 12; // there is idle time
}

void FirstHints::place()
{
    QRect idle; // with two lanes both hints are between them
    for (const Hint hint : {Idle, Drag, Run}) {
        const Shown& shown = m_shown[hint];
        if (!shown.bubble)
            continue;
        QPoint middle;
        const bool there = placeOf(hint, &middle);
        const QRect around = shown.bubble->parentWidget()->rect();
        QRect place(QPoint(), shown.bubble->size());
        place.moveCenter(middle);
        const int least = hint == Run ? 4 : TimelineView::plotLeft() + 4;
        place.moveLeft(std::max(least, std::min(place.left(), around.right() - place.width() - 4)));
        if (hint == Drag && place.intersects(idle))
            place.moveLeft(idle.right() + 8);
        const bool fits = there && around.contains(place);
        if (hint == Idle && fits)
            idle = place;
        shown.bubble->setVisible(fits);
        shown.cross->setVisible(fits);
        if (hint == Run)
            Q_EMIT runHintShown(fits);
        if (!fits)
            continue;
        shown.bubble->move(place.topLeft());
        shown.cross->move(place.right() - bubbleEdge - crossSize + 1, place.top() + (bubbleHeight - crossSize) / 2);
        shown.bubble->raise();
        shown.cross->raise();
    }
}

bool FirstHints::eventFilter(QObject* watched, QEvent* event)
{
    switch (event->type()) {
    case QEvent::Resize:
    case QEvent::Move:
    case QEvent::Show:
    case QEvent::Hide:
    case QEvent::EnabledChange: QTimer::singleShot(0, this, &FirstHints::place); break;
    default: break;
    }
    return QObject::eventFilter(watched, event);
}

} // namespace pipewright

#include "moc_firsthints.cpp"
