// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/runstrip.h"

#include "gui/run/runcontroller.h"
#include "gui/run/runplot.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QLabel>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QTextCursor>
#include <QTimer>
#include <QToolButton>

#include <cmath>

namespace pipewright {

namespace {

constexpr int stripHeight = 100, withMessages = 132; ///< in which a result of two lines leaves room for a message

} // namespace

RunStatus::RunStatus(RunController& controller, QWidget* parent)
    : QWidget(parent), m_text(new QLabel(this)), m_bar(new QProgressBar(this)),
      m_cancel(new QPushButton(tr("Cancel"), this))
{
    setAccessibleName(tr("The run under way"));
    m_text->setAccessibleName(tr("Progress of the run"));
    m_text->setFont(Theme::words(TextSize::Small));
    m_text->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_bar->setRange(0, 1000);
    m_bar->setTextVisible(false);
    m_bar->setFixedSize(64, 6);
    m_bar->setAccessibleName(tr("Progress"));
    m_cancel->setFocusPolicy(Qt::TabFocus);
    auto* layout = makeLayout<QHBoxLayout>(this, {0, 0, 0, 0}, 8);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_bar);
    layout->addWidget(m_cancel);
    hide();
    connect(m_cancel, &QPushButton::clicked, &controller, &RunController::cancel);
    connect(&controller, &RunController::started, this, [this] {
        m_text->setText(tr("Starting …"));
        m_bar->setRange(0, 0);
        m_cancel->setEnabled(true);
        show();
    });
    connect(&controller, &RunController::cancelling, this, [this] {
        m_text->setText(tr("Cancelling …"));
        m_cancel->setEnabled(false);
    });
    connect(&controller, &RunController::progressed, this, [this](const ChildProgress& progress) {
        m_bar->setRange(0, 1000);
        m_bar->setValue(static_cast<int>(std::lround(progress.share * 1000)));
        if (!m_cancel->isEnabled())
            return;
        // Its place in the bar is narrow; the strip below says how long it will take, and so does the tooltip.
        m_text->setText(progressText(progress).section(QStringLiteral(" · "), 0, 0));
        m_text->setToolTip(progressText(progress));
    });
    connect(&controller, &RunController::finished, this, &QWidget::hide);
}

QString RunStatus::text() const
{
    return m_text->text();
}

RunStrip::RunStrip(RunController& controller, QWidget* parent)
    : QWidget(parent), m_state(new Paragraph(this)),
      m_loss(new RunPlot(
          tr("loss"), [](double value) { return QString::number(value, 'f', 4); }, false, this)),
      m_times(new RunPlot(
          tr("time of a step"),
          [](double value) { return value == 0 ? QStringLiteral("0") : durationText(std::llround(value)); }, true,
          this)),
      m_log(new QPlainTextEdit(this)), m_close(new QToolButton(this))
{
    onThemeChange(this, [this] {
        // The label gets the new style sheet after this widget.
        QTimer::singleShot(0, this, [this] { setTone(m_state, m_tone); });
    });
    makePanel(this);
    setAccessibleName(tr("The last run"));
    m_state->setWordWrap(true);
    m_state->setAccessibleName(tr("State of the run"));
    m_state->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_state->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_log->setReadOnly(true);
    m_log->setFont(Theme::numbers(TextSize::Small));
    m_log->setAccessibleName(tr("Messages of the run"));
    m_log->setFocusPolicy(Qt::ClickFocus);
    m_log->setMinimumHeight(20);
    m_log->hide();
    m_close->setText(QStringLiteral("×"));
    m_close->setProperty("quiet", true);
    m_close->setAccessibleName(tr("Hide the run"));
    m_close->setToolTip(tr("Hide this strip; a run in progress continues"));
    m_close->setFixedSize(22, 20);
    m_close->setFocusPolicy(Qt::TabFocus);
    auto* words = new QVBoxLayout;
    words->setSpacing(4);
    words->addWidget(makeHeading(tr("Run"), this));
    words->addWidget(m_state);
    words->addWidget(m_log, 1);
    words->addStretch(0);
    auto* layout = makeLayout<QHBoxLayout>(nullptr, {18, 8, 10, 6}, 18);
    layout->addLayout(words, 3);
    layout->addWidget(m_loss, 2);
    layout->addWidget(m_times, 2);
    layout->addWidget(m_close, 0, Qt::AlignTop);
    auto* under = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 0);
    under->addLayout(layout, 1);
    under->addWidget(makeHairline(Qt::Horizontal, this));
    setFixedHeight(stripHeight);
    hide();
    connect(m_close, &QToolButton::clicked, this, &QWidget::hide);
    connect(&controller, &RunController::started, this, [this, &controller] {
        m_log->clear();
        m_log->hide();
        setFixedHeight(stripHeight);
        m_step = -1;
        m_loss->clear(controller.choice().steps);
        m_times->clear(controller.choice().steps);
        m_loss->setVisible(controller.choice().isTorch() || controller.choice().blocks == RunChoice::Blocks::Train);
        say(tr("Starting …"), Tone::Plain);
        show();
    });
    connect(&controller, &RunController::cancelling, this, [this] { say(tr("Cancelling …"), Tone::Plain); });
    connect(&controller, &RunController::progressed, this, [this](const ChildProgress& progress) {
        say(progressText(progress), Tone::Plain);
        if (progress.step >= 0 && progress.step == m_step)
            return; // the last step is told again when the run ends
        m_step = progress.step;
        if (progress.loss)
            m_loss->append(*progress.loss);
        if (progress.stepTime)
            m_times->append(*progress.stepTime);
    });
    connect(&controller, &RunController::message, this, [this](const QString& line) {
        m_log->show();
        setFixedHeight(withMessages);
        m_log->appendPlainText(line);
        QTimer::singleShot(0, m_log, [this] { // when it has its place
            // The list is low: it shows how its last message begins, not how it ends.
            QTextCursor cursor = m_log->textCursor();
            cursor.movePosition(QTextCursor::End);
            cursor.movePosition(QTextCursor::StartOfBlock);
            m_log->setTextCursor(cursor);
            m_log->ensureCursorVisible();
        });
    });
    connect(&controller, &RunController::finished, this, [this](const ChildResult& result) {
        say(runResultText(result), isBadResult(result)                ? Tone::Bad
                                   : result.kind == ChildResult::Done ? Tone::Good
                                                                      : Tone::Plain);
    });
}

void RunStrip::say(const QString& text, Tone tone)
{
    m_tone = tone;
    m_state->setText(text);
    setTone(m_state, tone);
}

QString RunStrip::state() const
{
    return m_state->text();
}

void RunStrip::addToResult(const QString& text)
{
    m_state->setText(m_state->text() + QLatin1Char(' ') + text);
}

QString RunStrip::messages() const
{
    return m_log->toPlainText();
}

} // namespace pipewright

#include "moc_runstrip.cpp"
