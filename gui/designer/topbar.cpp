// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/topbar.h"

#include "gui/widgets/labels.h"

#include <QAction>
#include <QEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int barHeight = 52;
constexpr int buttonHeight = 28;
constexpr int widestTitle = 300;

} // namespace

TopBar::TopBar(Document& document, const Actions& actions, QWidget* parent)
    : QWidget(parent), m_document(document), m_title(new QLabel(this)),
      m_state(makeCaption({}, TextSize::Normal, this)), m_undo(makeButton(actions.undo, tr("Undo"))),
      m_redo(makeButton(actions.redo, tr("Redo"))), m_overlay(makeMenuButton(actions.overlay, {}, tr("Overlay"))),
      m_search(new QLineEdit(this)), m_validity(new QPushButton(this)), m_run(new QPushButton(this))
{
    makePanel(this);
    setFixedHeight(barHeight);
    m_title->setFont(Theme::words(TextSize::Large, QFont::DemiBold));
    m_title->setAccessibleName(tr("Design"));
    m_validity->setAccessibleName(tr("Conflicts"));
    m_run->setProperty("primary", true);
    m_run->setAccessibleName(tr("Run"));
    setRunText(tr("Run"));
    m_search->setPlaceholderText(tr("Find F0.3  /"));
    m_search->setAccessibleName(tr("Find a block"));
    m_search->setToolTip(
        tr("A block by name: operation, stage, microbatch. The beginning is enough; Enter goes on, Shift+Enter back"));
    m_search->setFixedSize(110, buttonHeight);
    for (QWidget* button : {static_cast<QWidget*>(m_validity), static_cast<QWidget*>(m_run)})
        button->setFixedHeight(buttonHeight);

    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(20, 0, 20, 0);
    layout->setSpacing(8);
    layout->addWidget(m_title);
    layout->addSpacing(8);
    layout->addWidget(m_state);
    // Fixed width, so that the first edit does not move the buttons.
    m_state->setFixedWidth(m_state->fontMetrics().horizontalAdvance(tr("edited")) + 2);
    layout->addSpacing(20);
    layout->addWidget(makeMenuButton(actions.all, tr("Menu ▾"), tr("Menu")));
    layout->addWidget(makeButton(actions.newSchedule, tr("New…")));
    layout->addWidget(m_undo);
    layout->addWidget(m_redo);
    layout->addWidget(makeMenuButton(actions.schedule, tr("Schedule ▾"), tr("Schedule")));
    layout->addWidget(makeMenuButton(actions.explore, tr("Explore ▾"), tr("Explore")));
    layout->addWidget(m_search);
    layout->addStretch(1);
    layout->addWidget(m_validity);
    layout->addWidget(m_overlay);
    layout->addSpacing(4);
    layout->addWidget(m_run);

    connect(m_validity, &QPushButton::clicked, this, &TopBar::diagnosticsRequested);
    m_search->installEventFilter(this);
    connect(m_run, &QPushButton::clicked, actions.run, &QAction::trigger);
    connect(&m_document, &Document::designChanged, this, &TopBar::refresh);
    connect(&m_document, &Document::overlayChanged, this, &TopBar::refresh);
    connect(&m_document, &Document::pathChanged, this, &TopBar::refresh);
    connect(m_document.undoStack(), &QUndoStack::cleanChanged, this, &TopBar::refresh);
    refresh();
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

void TopBar::setRunText(const QString& text)
{
    m_run->setText(QStringLiteral("▶ ") + text);
}

void TopBar::refresh()
{
    const Design& design = m_document.design();
    m_fullTitle = QString::fromStdString(design.name);
    if (m_fullTitle.isEmpty())
        m_fullTitle = tr("untitled");
    m_title->setToolTip(m_document.path().isEmpty() ? tr("Not saved yet") : m_document.path());
    m_state->setText(m_document.undoStack()->isClean() ? QString() : tr("edited"));

    const Diagnostics& diagnostics = m_document.diagnostics();
    const auto errors = std::count_if(diagnostics.begin(), diagnostics.end(),
                                      [](const Diagnostic& d) { return d.severity == Severity::Error; });
    const auto warnings = std::count_if(diagnostics.begin(), diagnostics.end(),
                                        [](const Diagnostic& d) { return d.severity == Severity::Warning; });
    const std::size_t unplaced = m_document.unplaced().size();
    if (errors > 0)
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
                                  .arg((errors > 0                     ? theme.bad
                                        : warnings > 0 || unplaced > 0 ? theme.text
                                                                       : theme.good)
                                           .name()));
    m_validity->setToolTip(unplaced > 0 && diagnostics.empty() ? tr("It can run once every block has a place")
                           : diagnostics.empty() ? tr("The schedule can run: no cycle, nothing missing, memory fits")
                                                 : QString::fromStdString(toString(diagnostics)));
    // A recording that no longer fits after an edit returns when the edit is undone.
    const bool waits = !m_document.overlay() && !m_document.overlayPath().isEmpty();
    m_overlay->setText(m_document.overlay()
                           ? tr("Overlay: %1 ▾").arg(QFileInfo(m_document.overlay()->path).completeBaseName())
                       : waits ? tr("Overlay: of another order ▾")
                               : tr("Overlay: off ▾"));
    m_overlay->setToolTip(
        m_document.overlay() ? m_document.overlay()->path
        : waits ? tr("%1 recorded the schedule before your edits. Undo them to see it, or run the schedule again")
                      .arg(m_document.overlayPath())
                : tr("Lay a recorded run over the prediction"));
    showTitle();
}

void TopBar::showTitle()
{
    const int space = std::clamp(width() / 5, 120, widestTitle);
    m_title->setText(m_title->fontMetrics().elidedText(m_fullTitle, Qt::ElideMiddle, space));
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
    return QWidget::eventFilter(watched, event);
}

void TopBar::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        refresh();
}

void TopBar::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    showTitle();
}

} // namespace pipewright

#include "moc_topbar.cpp"
