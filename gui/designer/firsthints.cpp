// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/firsthints.h"

#include "gui/timeline/timelineview.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QAction>
#include <QPainter>
#include <QSettings>
#include <QTimer>
#include <QToolButton>

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

constexpr int lineHeight = 34, discSize = 18;
const QString doneKey = QStringLiteral("hints/done");

constexpr int leastForWords = 640; ///< width from which on the texts are the long ones

QString textOf(FirstHints::Hint hint, bool briefly = false)
{
    switch (hint) {
    case FirstHints::Drag: return FirstHints::tr("Drag a block");
    case FirstHints::Idle: return briefly ? FirstHints::tr("Click idle time") : FirstHints::tr("Click idle time: why?");
    case FirstHints::Run: return briefly ? FirstHints::tr("Run it") : FirstHints::tr("Run it here");
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

/// A number in a disc of the accent colour.
class Disc : public QWidget {
public:
    Disc(int number, QWidget* parent) : QWidget(parent), m_number(number) { setFixedSize(discSize, discSize); }

protected:
    void paintEvent(QPaintEvent*) override
    {
        const Theme& theme = Theme::of(*this);
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.accent);
        painter.drawEllipse(rect());
        painter.setPen(theme.onAccent);
        painter.setFont(Theme::words(TextSize::Small, QFont::DemiBold));
        painter.drawText(rect(), Qt::AlignCenter, QString::number(m_number));
    }

private:
    int m_number;
};

} // namespace

FirstHints::FirstHints(TimelineView& timeline, QAction& recordedRun, QSettings& settings, QWidget* parent)
    : QWidget(parent), m_settings(settings), m_recorded(new QToolButton(this)), m_cross(new QToolButton(this))
{
    makePanel(this);
    setFixedHeight(lineHeight);
    setAccessibleName(tr("First steps"));
    auto* layout = makeLayout<QHBoxLayout>(this, {16, 0, 12, 0}, 28);
    const QStringList done = settings.value(doneKey).toStringList();
    for (const Hint hint : {Drag, Idle, Run}) {
        QWidget* step = m_steps[hint] = new QWidget(this);
        auto* row = makeLayout<QHBoxLayout>(step, {0, 0, 0, 0}, 8);
        row->addWidget(new Disc(hint + 1, step));
        QLabel* text = m_texts[hint] = new QLabel(textOf(hint), step);
        text->setAccessibleName(tr("Hint %1: %2").arg(hint + 1).arg(textOf(hint)));
        row->addWidget(text);
        step->setVisible(!done.contains(keyOf(hint)));
        layout->addWidget(step);
    }
    m_recorded->setDefaultAction(&recordedRun);
    m_recorded->setProperty("link", true);
    m_recorded->setFocusPolicy(Qt::TabFocus);
    layout->addWidget(m_recorded);
    layout->addStretch(1);
    m_cross->setText(QStringLiteral("×"));
    m_cross->setProperty("quiet", true);
    m_cross->setFixedSize(24, 24);
    m_cross->setFocusPolicy(Qt::TabFocus);
    m_cross->setAccessibleName(tr("Hide the hints"));
    m_cross->setToolTip(tr("Hide the hints; the View menu brings them back"));
    layout->addWidget(m_cross);
    refresh();

    connect(m_cross, &QToolButton::clicked, this, [this] {
        for (const Hint hint : {Drag, Idle, Run})
            finish(hint);
    });
    connect(&timeline, &TimelineView::gapClicked, this, [this] { finish(Idle); });
    connect(&timeline, &TimelineView::previewChanged, this, [this, &timeline] {
        if (timeline.isPreviewing())
            m_dragged = true;
        else
            QTimer::singleShot(0, this, [this] { m_dragged = false; }); // the edit follows at once or was refused
    });
    const auto showRecorded = [this, &timeline] {
        m_recorded->setVisible(timeline.document().overlayPath().isEmpty());
    };
    connect(&timeline.document(), &Document::overlayChanged, this, showRecorded);
    connect(&timeline.document(), &Document::designChanged, this, showRecorded);
    connect(&timeline.document(), &Document::designChanged, this, [this] {
        if (std::exchange(m_dragged, false))
            finish(Drag);
    });
}

void FirstHints::finish(Hint hint)
{
    m_steps[hint]->hide();
    refresh();
}

void FirstHints::startOver()
{
    for (QWidget* step : m_steps)
        step->show();
    refresh();
}

void FirstHints::refresh()
{
    QStringList done;
    for (const Hint hint : {Drag, Idle, Run})
        if (!isShown(hint))
            done << keyOf(hint);
    if (m_settings.value(doneKey).toStringList() != done)
        m_settings.setValue(doneKey, done);
    setVisible(done.size() < hintCount);
}

void FirstHints::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    const bool briefly = width() < leastForWords;
    for (const Hint hint : {Drag, Idle, Run})
        m_texts[hint]->setText(textOf(hint, briefly));
    m_recorded->setText(briefly ? tr("recorded run") : tr("or see a recorded run"));
    layout()->setSpacing(briefly ? 12 : 28);
}

} // namespace pipewright

#include "moc_firsthints.cpp"
