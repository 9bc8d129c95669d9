// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/topbar.h"

#include "gui/designer/breadcrumb.h"
#include "gui/designer/windowactions.h"
#include "gui/run/runstrip.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QEvent>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

constexpr int barHeight = 52;
constexpr int buttonHeight = 28;
constexpr int barMargin = 14, barSpacing = 6;
constexpr int narrowestCrumbs = 200, widestCrumbs = 560;
constexpr int validityWidth = 112, overlayWidth = 132, runWidth = 78, symbolWidth = 34;

} // namespace

TopBar::TopBar(Document& document, Findings& findings, const WindowActions& actions, RunController& run,
               QWidget* parent)
    : QWidget(parent), m_document(document), m_findings(findings), m_actions(actions),
      m_breadcrumb(new Breadcrumb(this)), m_state(makeCaption({}, TextSize::Normal, this)),
      m_undo(makeButton(actions.undo, QStringLiteral("↶"))), m_redo(makeButton(actions.redo, QStringLiteral("↷"))),
      m_overlay(makeMenuButton(actions.overlayMenu, {}, tr("Overlay"))),
      m_more(makeMenuButton(new QMenu(this), QStringLiteral("⋯"), tr("More"))),
      m_recorded(makeButton(actions.recordedRun, tr("See a recorded run"))), m_search(new QLineEdit(this)),
      m_validity(new QPushButton(this)), m_run(new QPushButton(QStringLiteral("▶ ") + tr("Run"), this)),
      m_runStatus(new RunStatus(run, this))
{
    onThemeChange(this, [this] { refresh(); });
    makePanel(this);
    setFixedHeight(barHeight);
    m_undo->setAccessibleName(tr("Undo"));
    m_redo->setAccessibleName(tr("Redo"));
    for (QToolButton* symbol : {m_undo, m_redo, m_more})
        symbol->setFixedWidth(symbolWidth);
    m_more->setToolTip(tr("What has no room in the bar"));
    m_recorded->setProperty("link", true);
    m_validity->setAccessibleName(tr("Conflicts"));
    m_run->setProperty("primary", true);
    m_run->setAccessibleName(tr("Run"));
    m_search->setPlaceholderText(tr("Find F0.3  /"));
    m_search->setAccessibleName(tr("Find a block"));
    m_search->setToolTip(tr("A block by name: operation, stage, microbatch. The beginning is enough; Enter finds the "
                            "next, Shift+Enter the previous"));
    m_search->setFixedSize(100, buttonHeight);
    // Fixed widths: numbers and names that change move nothing.
    m_validity->setFixedSize(validityWidth, buttonHeight);
    m_overlay->setFixedWidth(overlayWidth);
    m_run->setFixedSize(runWidth, buttonHeight);
    m_state->setFixedWidth(m_state->fontMetrics().horizontalAdvance(tr("edited")) + 2);

    auto* menu = makeMenuButton(actions.allMenu, tr("Menu ▾"), tr("Menu"));
    auto* make = makeButton(actions.newSchedule, tr("New…"));
    auto* schedule = makeMenuButton(actions.scheduleMenu, tr("Schedule ▾"), tr("Schedule"));
    auto* explore = makeMenuButton(actions.exploreMenu, tr("Explore ▾"), tr("Explore"));
    auto* layout = makeLayout<QHBoxLayout>(this, {barMargin, 0, barMargin, 0}, barSpacing);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_breadcrumb, m_state, menu, m_undo, m_redo, make, schedule,
                                                           explore, m_more, m_search})
        layout->addWidget(widget);
    layout->addStretch(1);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_recorded, m_validity, m_overlay, m_runStatus, m_run})
        layout->addWidget(widget);
    // The button for the recorded example folds late, since new users find a recording there.
    m_foldables = {{m_search, actions.find, nullptr},         {make, actions.newSchedule, nullptr},
                   {schedule, nullptr, actions.scheduleMenu}, {explore, nullptr, actions.exploreMenu},
                   {m_overlay, nullptr, actions.overlayMenu}, {m_redo, actions.redo, nullptr},
                   {m_undo, actions.undo, nullptr},           {m_recorded, actions.recordedRun, nullptr},
                   {m_validity, actions.diagnostics, nullptr}};
    m_more->hide();

    connect(m_more->menu(), &QMenu::aboutToShow, this, &TopBar::showMore);
    connect(m_validity, &QPushButton::clicked, this, &TopBar::diagnosticsRequested);
    m_search->installEventFilter(this);
    connect(m_run, &QPushButton::clicked, actions.run, &QAction::trigger);
    connect(&m_document, &Document::designChanged, this, &TopBar::refresh);
    connect(&m_findings, &Findings::changed, this, &TopBar::showValidity);
    connect(&m_document, &Document::overlayChanged, this, &TopBar::refresh);
    connect(&m_document, &Document::pathChanged, this, &TopBar::refresh);
    connect(m_document.undoStack(), &QUndoStack::cleanChanged, this, &TopBar::refresh);
    refresh();
}

QSize TopBar::minimumSizeHint() const
{
    // The width of the parts that cannot fold, and of the button of the folded ones.
    int width = 2 * barMargin + narrowestCrumbs + m_state->width() + runWidth + symbolWidth + 5 * barSpacing;
    for (const QToolButton* button : findChildren<QToolButton*>(QString(), Qt::FindDirectChildrenOnly))
        if (button->menu() == m_actions.allMenu)
            width += button->sizeHint().width();
    return {width, barHeight};
}

QToolButton* TopBar::makeButton(QAction* action, const QString& text)
{
    auto* button = new QToolButton(this);
    button->setDefaultAction(action);
    button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    button->setFixedHeight(buttonHeight);
    button->setFocusPolicy(Qt::TabFocus);
    // Undo and redo change their text with each command; the button keeps one word.
    button->setText(text);
    connect(action, &QAction::changed, button, [button, text] { button->setText(text); });
    button->setAccessibleName(text);
    return button;
}

QToolButton* TopBar::makeMenuButton(QMenu* menu, const QString& text, const QString& name)
{
    auto* button = new QToolButton(this);
    button->setMenu(menu);
    button->setPopupMode(QToolButton::InstantPopup);
    button->setText(text);
    button->setAccessibleName(name);
    button->setFixedHeight(buttonHeight);
    button->setFocusPolicy(Qt::TabFocus);
    return button;
}

void TopBar::refresh()
{
    m_breadcrumb->showDesign(m_document.design());
    m_state->setText(m_document.undoStack()->isClean() ? QString() : tr("edited"));
    m_state->setToolTip(m_document.path().isEmpty() ? tr("Not saved yet") : m_document.path());
    // Useful only as long as no recording is overlaid.
    m_recorded->setEnabled(m_document.overlayPath().isEmpty());

    showValidity();
    // A recording that no longer fits after an edit returns when the edit is undone.
    const QString recording = m_document.overlayPath();
    const bool waits = !recording.isEmpty() && !m_document.overlay() && !m_document.isOverlayPending();
    const QString overlay = recording.isEmpty() ? tr("Overlay: off")
                            : waits             ? tr("Overlay: of another order")
                                                : tr("Overlay: %1").arg(TraceWindow::titleOf(recording));
    m_overlay->setText(m_overlay->fontMetrics().elidedText(overlay, Qt::ElideRight, overlayWidth - 40)
                       + QStringLiteral(" ▾"));
    m_overlay->setToolTip(
        recording.isEmpty() ? tr("Lay a recorded run over the prediction")
        : waits ? tr("%1 recorded the schedule before your edits. Undo them to see it, or run the schedule again")
                      .arg(recording)
                : recording);
    fold();
}

/// Green only when nothing at all is found.
void TopBar::showValidity()
{
    const Diagnostics& diagnostics = m_findings.all();
    const auto errors = std::count_if(diagnostics.begin(), diagnostics.end(),
                                      [](const Diagnostic& d) { return d.severity == Severity::Error; });
    const auto warnings = std::count_if(diagnostics.begin(), diagnostics.end(),
                                        [](const Diagnostic& d) { return d.severity == Severity::Warning; });
    const std::size_t unplaced = m_document.unplaced().size();
    const int over = m_findings.overMemory();
    if (!m_findings.isKnown())
        m_validity->setText(tr("checking…"));
    else if (over > 0)
        m_validity->setText(tr("%1 over memory").arg(over));
    else if (errors > 0)
        m_validity->setText(errors == 1 ? tr("1 conflict") : tr("%1 conflicts").arg(errors));
    else if (warnings > 0)
        m_validity->setText(warnings == 1 ? tr("1 warning") : tr("%1 warnings").arg(warnings));
    else if (unplaced > 0)
        m_validity->setText(tr("%1 unplaced").arg(unplaced));
    else
        m_validity->setText(tr("✓ No conflicts"));
    const Theme& theme = Theme::of(*this);
    // The application's style sheet sets button colours, so this button needs its own.
    m_validity->setStyleSheet(QStringLiteral("color: %1")
                                  .arg((errors > 0                                              ? theme.bad
                                        : !m_findings.isKnown() || warnings > 0 || unplaced > 0 ? theme.text
                                                                                                : theme.good)
                                           .name()));
    m_validity->setToolTip(!m_findings.isKnown() ? tr("Dependencies, deadlock and memory are being checked")
                           : unplaced > 0 && diagnostics.empty() ? tr("It can run once every block has a place")
                           : diagnostics.empty() ? tr("The schedule can run: no cycle, nothing missing, memory fits")
                                                 : proseText(diagnostics));
}

void TopBar::fold()
{
    if (m_foldables.empty())
        return; // not built yet
    const int crumbs = std::clamp(width() * 34 / 100, narrowestCrumbs, widestCrumbs);
    const auto widthOf = [](const QWidget* widget) {
        return std::max(widget->minimumWidth(), std::min(widget->sizeHint().width(), widget->maximumWidth()))
               + barSpacing;
    };
    std::vector<bool> folded(m_foldables.size(), false);
    for (std::size_t i = 0; i < m_foldables.size(); ++i)
        folded[i] = m_foldables[i].widget == m_recorded && !m_recorded->isEnabled(); // gone, not folded
    const auto isGone = [this](const QWidget* widget) {
        return widget == (m_running ? static_cast<const QWidget*>(m_run) : m_runStatus)
               || (widget == m_recorded && !m_recorded->isEnabled());
    };
    int space = width() - 2 * barMargin - crumbs - m_state->width() - 2 * barSpacing;
    for (const QWidget* widget : findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly))
        if (widget != m_breadcrumb && widget != m_state && widget != m_more && !isGone(widget))
            space -= widthOf(widget);
    std::vector<std::size_t> order(m_foldables.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    // While no recording is overlaid, the overlay menu folds first.
    if (m_recorded->isEnabled())
        std::stable_partition(order.begin(), order.end(),
                              [this](std::size_t i) { return m_foldables[i].widget == m_overlay; });
    bool any = false;
    for (const std::size_t i : order) {
        if (space >= (any ? widthOf(m_more) : 0))
            break;
        if (folded[i] || (m_searching && m_foldables[i].widget == m_search))
            continue;
        folded[i] = any = true;
        space += widthOf(m_foldables[i].widget);
    }
    // The title gets the remaining width whatever its text, so that the buttons do not move when it changes.
    const int over = space - (any ? widthOf(m_more) : 0);
    m_breadcrumb->setFixedWidth(std::clamp(crumbs + over, crumbs, widestCrumbs));
    for (std::size_t i = 0; i < m_foldables.size(); ++i)
        m_foldables[i].widget->setVisible(!folded[i]);
    m_more->setVisible(any);
}

void TopBar::setRunning(bool running)
{
    m_running = running;
    m_run->setVisible(!running);
    m_runStatus->setVisible(running);
    fold();
}

void TopBar::showSearch()
{
    m_searching = true;
    fold();
    m_search->setFocus(Qt::ShortcutFocusReason);
}

void TopBar::showMore()
{
    m_more->menu()->clear();
    for (auto part = m_foldables.rbegin(); part != m_foldables.rend(); ++part) {
        if (!part->widget->isHidden() || (part->widget == m_recorded && !m_recorded->isEnabled()))
            continue;
        if (part->menu)
            m_more->menu()->addMenu(part->menu);
        else
            m_more->menu()->addAction(part->action);
    }
}

bool TopBar::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_search && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            Q_EMIT searched(m_search->text(), key->modifiers() & Qt::ShiftModifier ? -1 : 1);
            return true;
        }
        if (key->key() == Qt::Key_Escape) {
            m_search->clear();
            Q_EMIT searchLeft();
            return true;
        }
    }
    if (watched == m_search && event->type() == QEvent::FocusOut && m_searching) {
        m_searching = false;
        QTimer::singleShot(0, this, &TopBar::fold);
    }
    return QWidget::eventFilter(watched, event);
}

void TopBar::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    fold();
}

} // namespace pipewright

#include "moc_topbar.cpp"
