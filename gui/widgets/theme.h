// SPDX-License-Identifier: GPL-3.0-or-later
// The one table of colours, fonts and sizes per look, dark and light; operations have the colours of the pictures
// (core/exchange/picturetheme.h). No other file of the GUI names a colour. Widgets call Theme::of(*this) when painting
// and repaint on QEvent::PaletteChange, so Theme::apply() alone switches the look at run time.
#pragma once

#include <QColor>
#include <QFont>
#include <QPalette>

#include "core/schedule/block.h"

#include <array>

class QApplication;
class QWidget;

namespace pipewright {

/// The five text sizes, in device-independent pixels.
enum class TextSize { Small = 11, Normal = 12, Large = 13, Title = 15, Verdict = 19 };

struct Theme {
    bool isDark = false;

    QColor background; ///< first surface: behind the lanes and charts
    QColor panel;      ///< second surface: side panels, bars, dialogs
    QColor control;    ///< buttons, selected rows and cards on a panel
    QColor lane;       ///< a lane's background, slightly lighter
    QColor hairline;   ///< every line that separates
    QColor text, dim;  ///< words and numbers; headings and captions
    QColor accent;     ///< selection, focus, the one primary action
    QColor onAccent;   ///< text on the accent
    QColor good, bad;  ///< gains; limits and errors
    QColor idle;       ///< the hatch of idle time
    QColor chartFill;  ///< below a memory curve
    QColor persistent; ///< weights and optimizer below a memory curve
    QColor waiting;    ///< what is neither work nor state: overhead, workspace, bars of the overview
    QColor ink;        ///< letters on blocks, the same in both looks because the blocks are bright in both
    QColor texture;    ///< hatches and dots over a block's fill (ink, mostly transparent)
    QColor selection;  ///< frame of the selected block and dependency arrows
    std::array<QColor, opCount> fills; ///< by Op

    const QColor& fill(Op op) const { return fills[indexOf(op)]; }
    /// Every second chunk of a device is paler, to distinguish its chunks.
    QColor fill(Op op, int chunk) const;

    static constexpr int blockRadius = 3;
    static constexpr int controlRadius = 6;

    static const Theme& dark();
    static const Theme& light();
    /// The look that a palette belongs to: dark when its window is darker than its text. Also how the system's
    /// preference is read at start (Qt 6.4 has no colour scheme hint).
    static const Theme& of(const QPalette& palette);
    static const Theme& of(const QWidget& widget);

    /// Fusion style, palette, fonts and stylesheet for the whole application. May be called again at any time.
    void apply(QApplication& application) const;
    QPalette palette() const;

    /// For words: Inter, or the system's sans.
    static QFont words(TextSize size = TextSize::Normal, QFont::Weight weight = QFont::Normal);
    /// For numbers: JetBrains Mono, or DejaVu Sans Mono; figures align in columns.
    static QFont numbers(TextSize size = TextSize::Normal, QFont::Weight weight = QFont::Normal);
    /// For headings of panels, drawn in `dim`: small, semi-bold, capitals.
    static QFont heading();
};

} // namespace pipewright
