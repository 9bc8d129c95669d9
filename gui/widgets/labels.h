// SPDX-License-Identifier: GPL-3.0-or-later
// The few kinds of text a panel is made of, so that every panel sets them alike: headings in small dim
// capitals, captions in the dim colour, numbers in the monospaced face. Colours come from palette roles,
// so labels follow a change of theme without being told.
#pragma once

#include "gui/widgets/theme.h"

#include <QLabel>
#include <QString>

#include <optional>

class QFrame;

namespace pipewright {

/// A label that may wrap, and remembers how high it is at a width: whenever any label of a panel changes, the layout
/// asks all that wrap, and each lays out its text to tell.
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
QLabel* makeNumber(const QString& text, TextSize size = TextSize::Normal, QWidget* parent = nullptr);

enum class Tone { Plain, Dim, Good, Bad, Accent };
/// Colours a label by a token. Good and bad are not palette roles: call again on QEvent::PaletteChange.
void setTone(QLabel* label, Tone tone);

/// A one-pixel line in the hairline colour.
QFrame* makeHairline(Qt::Orientation orientation, QWidget* parent = nullptr);

/// Makes a widget the second surface (the panel colour).
void makePanel(QWidget* widget);

} // namespace pipewright
