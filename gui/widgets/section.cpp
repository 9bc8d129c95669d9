// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/section.h"

#include "gui/widgets/layouts.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/themechange.h"

#include <QToolButton>

namespace pipewright {

Section::Section(const QString& title, QWidget* body, bool open, QWidget* parent)
    : QWidget(parent), m_title(title), m_heading(new QToolButton(this)), m_body(body), m_open(open)
{
    onThemeChange(this, [this] { refresh(); });
    m_heading->setFocusPolicy(Qt::TabFocus);
    m_heading->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_heading->setAutoRaise(true);
    m_heading->setFont(Theme::heading());
    m_heading->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 8);
    layout->addWidget(m_heading, 0, Qt::AlignLeft);
    layout->addWidget(m_body);
    connect(m_heading, &QToolButton::clicked, this, [this] { setOpen(!m_open); });
    refresh();
}

void Section::setTitle(const QString& title)
{
    m_title = title;
    refresh();
}

void Section::setOpen(bool open)
{
    m_open = open;
    refresh();
}

void Section::refresh()
{
    m_heading->setText(QStringLiteral("%1  %2").arg(m_title, m_open ? QStringLiteral("▾") : QStringLiteral("▸")));
    m_heading->setAccessibleName(m_title);
    m_heading->setAccessibleDescription(m_open ? tr("open") : tr("folded"));
    m_body->setVisible(m_open);
    // Looks like a heading that does not fold; the application's style sheet would style it as a button.
    const QString sheet =
        QStringLiteral("QToolButton { background: transparent; border: none; border-bottom: 1px solid "
                       "transparent; padding: 1px 0; margin-left: -4px; color: %1; }"
                       "QToolButton:hover, QToolButton:focus { color: %2; border-bottom-color: %2; }")
            .arg(Theme::of(*this).dim.name(), Theme::of(*this).accent.name());
    if (sheet != m_heading->styleSheet())
        m_heading->setStyleSheet(sheet);
}

} // namespace pipewright

#include "moc_section.cpp"
