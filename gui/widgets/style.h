// SPDX-License-Identifier: GPL-3.0-or-later
// Qt's Fusion style with the program's own icons where Qt has bitmaps in another style: navigation of file dialogs,
// message boxes, the cross that clears a field. They are drawn in the theme's colours, at every size.
#pragma once

#include <QProxyStyle>

namespace pipewright {

struct Theme;

class Style : public QProxyStyle {
    Q_OBJECT

public:
    explicit Style(const Theme& theme);
    QIcon standardIcon(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const override;
    QPixmap standardPixmap(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const override;
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override;
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                  QStyleHintReturn* data) const override;

private:
    const Theme& m_theme;
};

} // namespace pipewright
