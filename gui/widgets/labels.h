// SPDX-License-Identifier: GPL-3.0-or-later
// The text styles of panels: headings in small dim capitals, captions in the dim colour, numbers in a monospaced font.
// Colours come from palette roles, so labels follow theme changes automatically.
#pragma once

#include "gui/widgets/theme.h"

#include <QLabel>
#include <QString>

#include <optional>

class QFrame;

namespace pipewright {

/// A wrapping label that caches its height for a width, because a layout asks all wrapping labels when one changes.
class Paragraph : public QLabel {
public:
    using QLabel::QLabel;
    int heightForWidth(int width) const override;

private:
    struct Known {
        QString text;
        QFont font;
        int width, height;
    };
    mutable std::optional<Known> m_known;
};

QLabel* makeHeading(const QString& text, QWidget* parent = nullptr);
QLabel* makeCaption(const QString& text, TextSize size = TextSize::Normal, QWidget* parent = nullptr);
QLabel* makeCaptionOf(QWidget* field, const QString& text); ///< screen readers read it with the field
QLabel* makeNumber(const QString& text, TextSize size = TextSize::Normal, QWidget* parent = nullptr);
/// The same, but it can shrink to `least` pixels and elides what does not fit: give the full text in a tooltip.
QLabel* makeShrinkingNumber(const QString& text, TextSize size, int least, QWidget* parent);

enum class Tone { Plain, Dim, Good, Bad, Accent };
/// Colours a label by a token. Good and bad are not palette roles: call again on QEvent::PaletteChange.
void setTone(QLabel* label, Tone tone);

/// A one-pixel line in the hairline colour.
QFrame* makeHairline(Qt::Orientation orientation, QWidget* parent = nullptr);

/// Makes a widget the second surface (the panel colour).
void makePanel(QWidget* widget);

} // namespace pipewright
