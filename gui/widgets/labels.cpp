// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/labels.h"

#include <QApplication>
#include <QEnterEvent>
#include <QFrame>
#include <QPainter>
#include <QStyle>

#include <algorithm>

namespace pipewright {

namespace {

/// Its text is selectable only under the cursor. A selectable label lays out a document at every change and size query,
/// which takes a sixth of a frame during a drag.
class NumberLabel : public QLabel {
public:
    explicit NumberLabel(const QString& text, int least, QWidget* parent) : QLabel(text, parent), m_least(least) {}
    QSize sizeHint() const override
    {
        return {fontMetrics().horizontalAdvance(text()), fontMetrics().height()};
    } // the same whether selectable or not
    QSize minimumSizeHint() const override { return {std::min(m_least, sizeHint().width()), sizeHint().height()}; }

protected:
    void paintEvent(QPaintEvent* event) override
    {
        if (sizeHint().width() <= width())
            return QLabel::paintEvent(event);
        QPainter painter(this); // elides the text
        style()->drawItemText(&painter, rect(), static_cast<int>(alignment()), palette(), isEnabled(),
                              fontMetrics().elidedText(text(), Qt::ElideRight, width()), foregroundRole());
    }
    void enterEvent(QEnterEvent* event) override
    {
        QLabel::enterEvent(event);
        setSelectable(true);
    }
    void leaveEvent(QEvent* event) override
    {
        QLabel::leaveEvent(event);
        if (!hasSelectedText())
            setSelectable(false);
    }
    void focusOutEvent(QFocusEvent* event) override
    {
        QLabel::focusOutEvent(event);
        if (!underMouse() && event->reason() != Qt::PopupFocusReason) // the context menu with Copy
            setSelectable(false);
    }

private:
    void setSelectable(bool selectable)
    {
        setTextInteractionFlags(selectable ? Qt::TextSelectableByMouse : Qt::NoTextInteraction);
        setCursor(Qt::ArrowCursor);
    }

    int m_least; // minimum width in pixels
};

} // namespace

int Paragraph::heightForWidth(int width) const
{
    if (!m_known || m_known->width != width || m_known->text != text() || m_known->font != font())
        m_known = Known{text(), font(), width, QLabel::heightForWidth(width)};
    return m_known->height;
}

QLabel* makeHeading(const QString& text, QWidget* parent)
{
    auto* label = new QLabel(text, parent);
    label->setFont(Theme::heading());
    label->setForegroundRole(QPalette::PlaceholderText);
    return label;
}

QLabel* makeCaption(const QString& text, TextSize size, QWidget* parent)
{
    auto* label = new Paragraph(text, parent);
    label->setFont(Theme::words(size));
    label->setForegroundRole(QPalette::PlaceholderText);
    return label;
}

QLabel* makeCaptionOf(QWidget* field, const QString& text)
{
    QLabel* label = makeCaption(text);
    label->setBuddy(field);
    return label;
}

QLabel* makeNumber(const QString& text, TextSize size, QWidget* parent)
{
    return makeShrinkingNumber(text, size, QWIDGETSIZE_MAX, parent);
}

QLabel* makeShrinkingNumber(const QString& text, TextSize size, int least, QWidget* parent)
{
    auto* label = new NumberLabel(text, least, parent);
    label->setFont(Theme::numbers(size));
    label->setTextFormat(Qt::PlainText);
    label->setCursor(Qt::ArrowCursor);
    return label;
}

void setTone(QLabel* label, Tone tone)
{
    // The application's palette, because during a theme change the label still has the old one.
    const Theme& theme = Theme::of(QApplication::palette());
    QPalette palette;
    switch (tone) {
    case Tone::Plain: break;
    case Tone::Dim: palette.setColor(QPalette::WindowText, theme.dim); break;
    case Tone::Good: palette.setColor(QPalette::WindowText, theme.good); break;
    case Tone::Bad: palette.setColor(QPalette::WindowText, theme.bad); break;
    case Tone::Accent: palette.setColor(QPalette::WindowText, theme.accent); break;
    }
    label->setForegroundRole(QPalette::WindowText);
    label->setPalette(palette);
}

QFrame* makeHairline(Qt::Orientation orientation, QWidget* parent)
{
    auto* line = new QFrame(parent);
    line->setAutoFillBackground(true);
    line->setBackgroundRole(QPalette::Mid);
    if (orientation == Qt::Horizontal)
        line->setFixedHeight(1);
    else
        line->setFixedWidth(1);
    return line;
}

void makePanel(QWidget* widget)
{
    widget->setAutoFillBackground(true);
    widget->setBackgroundRole(QPalette::Base);
}

} // namespace pipewright
