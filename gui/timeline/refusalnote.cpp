// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/refusalnote.h"

#include "gui/document/document.h"
#include "gui/document/namededits.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"

#include <algorithm>

namespace pipewright {

RemedyButton::RemedyButton(Document& document, QWidget* parent) : QPushButton(parent), m_document(document)
{
    setFocusPolicy(Qt::TabFocus); // a click leaves the keyboard focus where it is
    hide();
    connect(this, &QPushButton::clicked, this, [this] {
        hide();
        m_document.applyLater(m_requests);
    });
    // A remedy is valid only for the design that it was tried on.
    connect(&document, &Document::designChanged, this, &RemedyButton::withdraw);
}

void RemedyButton::offer(const EditRequest& refused)
{
    const std::shared_ptr<const Design> design = m_document.sharedDesign();
    const std::optional<EditRequest> remedy = remedyFor(refused, design, m_document.prediction());
    setVisible(remedy.has_value());
    if (!remedy)
        return;
    m_requests = {*remedy, refused};
    setText(editName(*remedy, *design, m_document.prediction(), {design, {}, {}}));
    setToolTip(tr("And then make the edit that was refused; one undo takes back both"));
}

RefusalNote::RefusalNote(Document& document, QWidget* parent)
    : QFrame(parent), m_why(new Paragraph(this)), m_remedy(new RemedyButton(document, this))
{
    onThemeChange(this, [this] { style(); });
    constexpr int widest = 320;
    setObjectName(QStringLiteral("refusal"));
    setAccessibleName(tr("Refused edit"));
    setCursor(Qt::ArrowCursor);
    m_why->setWordWrap(true);
    m_why->setFixedWidth(widest);
    auto* layout = makeLayout<QVBoxLayout>(this, {12, 9, 12, 10}, 8);
    layout->addWidget(m_why);
    layout->addWidget(m_remedy, 0, Qt::AlignLeft);
    style();
    hide();
    // When pressed by key the button has the focus; hiding it would pass the focus to the next widget.
    connect(m_remedy, &QPushButton::clicked, parent, [parent] { parent->setFocus(Qt::OtherFocusReason); });
    connect(&document, &Document::designChanged, this, &QWidget::hide);
    connect(&document, &Document::selectionChanged, this, &QWidget::hide);
}

bool RefusalNote::offer(const EditRequest& refused, const QString& why, QPoint near)
{
    m_remedy->offer(refused);
    if (m_remedy->isHidden()) {
        hide();
        return false;
    }
    m_why->setText(why.left(1).toUpper() + why.mid(1));
    setAccessibleDescription(why);
    adjustSize();
    constexpr int edge = 4;
    const QRect inside = parentWidget()->rect().adjusted(edge, edge, -edge, -edge);
    const QPoint wanted = near + QPoint(16, 20);
    move(std::max(inside.left(), std::min(wanted.x(), inside.right() - width())),
         std::max(inside.top(), std::min(wanted.y(), inside.bottom() - height())));
    show();
    raise();
    return true;
}

void RefusalNote::style()
{
    const Theme& theme = Theme::of(*this);
    const QString sheet =
        QStringLiteral("QFrame#refusal { background: %1; border: 1px solid %2; border-radius: %3px; }")
            .arg(theme.panel.name(), theme.bad.name())
            .arg(Theme::controlRadius);
    if (sheet == styleSheet())
        return; // a new sheet changes the palette, which asks for it again
    setStyleSheet(sheet);
    setTone(m_why, Tone::Bad);
}

} // namespace pipewright

#include "moc_refusalnote.cpp"
