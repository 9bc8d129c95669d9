// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/style.h"

#include "gui/widgets/theme.h"

#include <QDialogButtonBox>
#include <QIcon>
#include <QPainter>
#include <QPainterPath>
#include <QStyleFactory>
#include <QStyleOption>

namespace pipewright {

namespace {

/// Draws an icon in a 16 x 16 square with its lines in the pen's colour; false for an icon that Fusion draws.
bool drawSign(QPainter& painter, QStyle::StandardPixmap which, const Theme& theme)
{
    const auto lines = [&painter](std::initializer_list<QPointF> points) {
        painter.drawPolyline(QPolygonF(QList<QPointF>(points)));
    };
    const auto disc = [&](const QColor& color, const QString& sign) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(color);
        painter.drawEllipse(QRectF(0.5, 0.5, 15, 15));
        QFont font = Theme::words(TextSize::Normal, QFont::Bold);
        font.setPixelSize(10);
        painter.setFont(font);
        painter.setPen(theme.onAccent);
        painter.drawText(QRectF(0, 0, 16, 16), Qt::AlignCenter, sign);
    };
    switch (which) {
    case QStyle::SP_ArrowBack:
    case QStyle::SP_ArrowLeft:
    case QStyle::SP_FileDialogBack: lines({{9.5, 3}, {4.5, 8}, {9.5, 13}}); return true;
    case QStyle::SP_ArrowForward:
    case QStyle::SP_ArrowRight: lines({{6.5, 3}, {11.5, 8}, {6.5, 13}}); return true;
    case QStyle::SP_FileDialogToParent:
    case QStyle::SP_ArrowUp:
        lines({{8, 13}, {8, 3.5}});
        lines({{3.5, 8}, {8, 3.5}, {12.5, 8}});
        return true;
    case QStyle::SP_FileDialogNewFolder:
        lines({{8, 13}, {1.5, 13}, {1.5, 3}, {6, 3}, {7.5, 5}, {14, 5}, {14, 8}});
        lines({{12, 9.5}, {12, 14.5}});
        lines({{9.5, 12}, {14.5, 12}});
        return true;
    case QStyle::SP_DirIcon:
    case QStyle::SP_DirClosedIcon:
    case QStyle::SP_DirOpenIcon:
    case QStyle::SP_DirLinkIcon:
        painter.setBrush(theme.control);
        lines({{1.5, 3}, {6, 3}, {7.5, 5}, {14.5, 5}, {14.5, 13}, {1.5, 13}, {1.5, 3}});
        return true;
    case QStyle::SP_DirHomeIcon:
        lines({{1.5, 8}, {8, 2}, {14.5, 8}});
        lines({{3.5, 7}, {3.5, 14}, {12.5, 14}, {12.5, 7}});
        return true;
    case QStyle::SP_ComputerIcon:
    case QStyle::SP_DesktopIcon:
        painter.setBrush(theme.control);
        painter.drawRect(QRectF(1.5, 2.5, 13, 8.5));
        lines({{8, 11}, {8, 13.5}});
        lines({{4.5, 13.5}, {11.5, 13.5}});
        return true;
    case QStyle::SP_DriveHDIcon:
    case QStyle::SP_DriveNetIcon:
        painter.setBrush(theme.control);
        painter.drawRect(QRectF(1.5, 4.5, 13, 7));
        lines({{11, 8}, {12, 8}});
        return true;
    case QStyle::SP_FileIcon:
    case QStyle::SP_FileLinkIcon:
        lines({{3.5, 1.5}, {9.5, 1.5}, {12.5, 4.5}, {12.5, 14.5}, {3.5, 14.5}, {3.5, 1.5}});
        return true;
    case QStyle::SP_FileDialogListView:
        for (const double y : {4.0, 8.0, 12.0})
            for (const double x : {2.0, 9.0})
                lines({{x, y}, {x + 5, y}});
        return true;
    case QStyle::SP_FileDialogDetailedView:
        for (const double y : {4.0, 8.0, 12.0})
            lines({{2, y}, {14, y}});
        return true;
    case QStyle::SP_LineEditClearButton:
        lines({{4.5, 4.5}, {11.5, 11.5}});
        lines({{11.5, 4.5}, {4.5, 11.5}});
        return true;
    case QStyle::SP_MessageBoxQuestion: disc(theme.accent, QStringLiteral("?")); return true;
    case QStyle::SP_MessageBoxInformation: disc(theme.accent, QStringLiteral("i")); return true;
    case QStyle::SP_MessageBoxWarning:
    case QStyle::SP_MessageBoxCritical: disc(theme.bad, QStringLiteral("!")); return true;
    default: return false; // Qt has about eighty; those above are the ones that the program's windows use
    }
}

QPixmap signPixmap(QStyle::StandardPixmap which, const Theme& theme, const QColor& color, int size, double ratio)
{
    QPixmap pixmap(QSize(size, size) * ratio);
    pixmap.setDevicePixelRatio(ratio);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(size / 16.0, size / 16.0);
    painter.setPen(QPen(color, 1.5, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    return drawSign(painter, which, theme) ? pixmap : QPixmap();
}

} // namespace

Style::Style(const Theme& theme) : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))), m_theme(theme) {}

QIcon Style::standardIcon(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const
{
    if (signPixmap(which, m_theme, m_theme.text, 16, 1).isNull())
        return QProxyStyle::standardIcon(which, option, widget);
    QIcon icon;
    for (const int size : {16, 32, 48})
        for (const double ratio : {1.0, 2.0}) {
            icon.addPixmap(signPixmap(which, m_theme, m_theme.text, size, ratio));
            icon.addPixmap(signPixmap(which, m_theme, m_theme.dim, size, ratio), QIcon::Disabled);
        }
    return icon;
}

QPixmap Style::standardPixmap(StandardPixmap which, const QStyleOption* option, const QWidget* widget) const
{
    const double ratio = widget ? widget->devicePixelRatioF() : 1;
    const QPixmap own = signPixmap(which, m_theme, m_theme.text, 32, ratio);
    return own.isNull() ? QProxyStyle::standardPixmap(which, option, widget) : own;
}

void Style::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                          const QWidget* widget) const
{
    if (element != PE_FrameFocusRect)
        return QProxyStyle::drawPrimitive(element, option, painter, widget);
    // The same ring as around focused fields instead of Fusion's shaded box; as in Fusion, only after keyboard use.
    if (!(option->state & State_KeyboardFocusChange))
        return;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(m_theme.accent);
    painter->setBrush(Qt::NoBrush);
    painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
    painter->restore();
}

int Style::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget, QStyleHintReturn* data) const
{
    if (hint == SH_DialogButtonLayout) // the same order everywhere, whatever the desktop
        return QDialogButtonBox::GnomeLayout;
    return QProxyStyle::styleHint(hint, option, widget, data);
}

} // namespace pipewright

#include "moc_style.cpp"
