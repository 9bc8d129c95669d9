// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/topbar.h"

#include "gui/designer/breadcrumb.h"
#include "gui/designer/findfield.h"
#include "gui/designer/windowactions.h"
#include "gui/run/runstrip.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>

#include <algorithm>
#include <optional>

namespace pipewright {

namespace {

constexpr int barHeight = 52, buttonHeight = 28;
constexpr int barMargin = 14, barSpacing = 6;
constexpr int narrowestCrumbs = 330, widestCrumbs = 760;
constexpr int validityWidth = 154, runWidth = 112, symbolWidth = 34, narrowestFind = 150;

} // namespace

TopBar::TopBar(Document& document, Findings& findings, const WindowActions& actions, RunController& run,
               FindField* find, QWidget* parent)
    : QWidget(parent), m_document(document), m_findings(findings), m_breadcrumb(new Breadcrumb(this)),
      m_undo(makeButton(actions.undo, QStringLiteral("↶"))), m_redo(makeButton(actions.redo, QStringLiteral("↷"))),
      m_menu(new QToolButton(this)), m_find(find), m_validity(new QPushButton(this)),
      m_run(new QPushButton(QStringLiteral("▶ ") + tr("Run"), this)), m_runStatus(new RunStatus(run, this))
{
    onThemeChange(this, [this] { refresh(); });
    makePanel(this);
    setFixedHeight(barHeight);
    m_undo->setAccessibleName(tr("Undo"));
    m_redo->setAccessibleName(tr("Redo"));
    m_menu->setText(QStringLiteral("☰"));
    m_menu->setAccessibleName(tr("Menu"));
    m_menu->setToolTip(tr("Files, other windows, recordings, view: everything"));
    m_menu->setMenu(actions.allMenu);
    m_menu->setPopupMode(QToolButton::InstantPopup);
    m_menu->setFixedHeight(buttonHeight);
    m_menu->setFocusPolicy(Qt::TabFocus);
    for (QToolButton* symbol : {m_undo, m_redo, m_menu})
        symbol->setFixedWidth(symbolWidth);
    m_run->setProperty("primary", true);
    m_run->setAccessibleName(tr("Run"));
    m_find->setFixedHeight(buttonHeight);
    m_find->setMinimumWidth(narrowestFind);
    // Fixed widths: numbers and names that change move nothing.
    m_validity->setFixedSize(validityWidth, buttonHeight);
    m_run->setFixedSize(runWidth, buttonHeight);
    m_runStatus->setFixedWidth(validityWidth + barSpacing + runWidth); // in the place of both
    auto* layout = makeLayout<QHBoxLayout>(this, {barMargin, 0, barMargin, 0}, barSpacing);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_breadcrumb, m_undo, m_redo, m_menu})
        layout->addWidget(widget);
    layout->addWidget(m_find, 1);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_validity, m_run, m_runStatus})
        layout->addWidget(widget);
    setRunning(false);

    connect(m_validity, &QPushButton::clicked, this, &TopBar::diagnosticsRequested);
    connect(m_run, &QPushButton::clicked, actions.run, &QAction::trigger);
    connect(&m_document, &Document::designChanged, this, &TopBar::refresh);
    connect(&m_findings, &Findings::changed, this, &TopBar::showValidity);
    refresh();
}

QSize TopBar::minimumSizeHint() const
{
    return {2 * barMargin + narrowestCrumbs + 3 * symbolWidth + narrowestFind + m_runStatus->width() + 6 * barSpacing,
            barHeight};
}

void TopBar::arrange()
{
    const int others = minimumSizeHint().width() - narrowestCrumbs;
    m_breadcrumb->setFixedWidth(
        std::clamp(std::min(width() * 42 / 100, width() - others), narrowestCrumbs, widestCrumbs));
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

void TopBar::refresh()
{
    m_breadcrumb->showDesign(m_document.design());
    showValidity();
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
        m_validity->setText(tr("▲ %1 over memory").arg(over));
    else if (errors > 0)
        m_validity->setText(errors == 1 ? tr("1 conflict") : tr("%1 conflicts").arg(errors));
    else if (warnings > 0)
        m_validity->setText(warnings == 1 ? tr("1 warning") : tr("%1 warnings").arg(warnings));
    else if (unplaced > 0)
        m_validity->setText(tr("%1 unplaced").arg(unplaced));
    else
        m_validity->setText(spareText());
    m_validity->setAccessibleName(tr("Conflicts: %1").arg(m_validity->text()));
    const Theme& theme = Theme::of(*this);
    const bool bad = errors > 0, good = m_findings.isKnown() && warnings == 0 && unplaced == 0;
    const QColor& colour = bad ? theme.bad : good ? theme.good : theme.text;
    QColor ground = bad || good ? colour : theme.control;
    ground.setAlphaF(bad || good ? 0.14f : 1.0f);
    // The application's style sheet sets button colours, so this button needs its own.
    m_validity->setStyleSheet(
        QStringLiteral("color: %1; background: %2; font-weight: 600").arg(colour.name(), ground.name(QColor::HexArgb)));
    m_validity->setToolTip(!m_findings.isKnown() ? tr("Dependencies, deadlock and memory are being checked")
                           : unplaced > 0 && diagnostics.empty() ? tr("It can run once every block has a place")
                           : diagnostics.empty() ? tr("The schedule can run: no cycle, nothing missing, memory fits")
                                                 : proseText(diagnostics));
}

/// What the fullest device has left.
QString TopBar::spareText() const
{
    const Prediction* const prediction = m_document.prediction();
    const std::vector<DeviceSpec>& devices = m_document.design().cluster.devices;
    std::optional<Bytes> least;
    for (std::size_t d = 0; prediction && !m_document.pendingMemory() && d < devices.size(); ++d)
        if (devices[d].memory > 0 && d < prediction->metrics.devices.size())
            least = std::min(least.value_or(devices[d].memory),
                             devices[d].memory - prediction->metrics.devices[d].peakBytes);
    return least ? tr("✓ fits, %1 spare").arg(sizeText(*least)) : tr("✓ No conflicts");
}

void TopBar::setRunning(bool running)
{
    m_run->setVisible(!running);
    m_validity->setVisible(!running);
    m_runStatus->setVisible(running);
}

void TopBar::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    arrange();
}

} // namespace pipewright

#include "moc_topbar.cpp"
