// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/theme.h"

#include "core/exchange/picturetheme.h"
#include "gui/widgets/style.h"

#include <QApplication>
#include <QFontDatabase>
#include <QString>
#include <QWidget>

/// Resources of a static library are registered by hand, outside any namespace.
static void registerIcons()
{
    Q_INIT_RESOURCE(icons);
}

namespace pipewright {
namespace {

// Qt tries the families of the list in order, so a machine without Inter gets its own sans-serif font.
QFont font(const QStringList& families, QFont::StyleHint hint, TextSize size, QFont::Weight weight)
{
    QFont font;
    font.setFamilies(families);
    font.setStyleHint(hint);
    font.setPixelSize(static_cast<int>(size));
    font.setWeight(weight);
    return font;
}

QColor transparent(const QColor& color, double alpha)
{
    QColor result = color;
    result.setAlphaF(static_cast<float>(alpha));
    return result;
}

std::array<QColor, opCount> fillsOf(const PictureTheme& pictures)
{
    std::array<QColor, opCount> fills;
    for (const Op op : allOps)
        fills[indexOf(op)] =
            QColor(QLatin1String(pictures.colourOf(op).data(), qsizetype(pictures.colourOf(op).size())));
    return fills;
}

Theme makeDark()
{
    Theme theme;
    theme.isDark = true;
    theme.background = QColor(0x15171c);
    theme.panel = QColor(0x1c1f26);
    theme.control = QColor(0x242933);
    theme.lane = QColor(0x191c22);
    theme.hairline = QColor(0x2c313b);
    theme.text = QColor(0xdfe4ec);
    theme.dim = QColor(0x8d97a7);
    theme.accent = QColor(0x7aa2ff);
    theme.onAccent = QColor(0x0e1116);
    theme.good = QColor(0x58c99b);
    theme.bad = QColor(0xff7a6b);
    theme.ink = QColor(0x0e1116);
    theme.texture = transparent(theme.ink, 0.22);
    theme.idle = transparent(theme.dim, 0.20);
    theme.chartFill = transparent(theme.accent, 0.22);
    theme.persistent = QColor(0x2f4852);
    theme.waiting = QColor(0x4a4f58);
    theme.selection = QColor(0xffffff);
    theme.fills = fillsOf(darkTheme);
    return theme;
}

Theme makeLight()
{
    Theme theme;
    theme.background = QColor(0xf4f5f8);
    theme.panel = QColor(0xffffff);
    theme.control = QColor(0xeef1f6);
    theme.lane = QColor(0xfafbfc);
    theme.hairline = QColor(0xdde1e8);
    theme.text = QColor(0x1d2430);
    theme.dim = QColor(0x667085);
    theme.accent = QColor(0x2f62d9);
    theme.onAccent = QColor(0xffffff);
    theme.good = QColor(0x12875a);
    theme.bad = QColor(0xc8392b);
    theme.ink = QColor(0x10151d);
    theme.texture = transparent(theme.ink, 0.18);
    theme.idle = transparent(theme.dim, 0.28);
    theme.chartFill = transparent(theme.accent, 0.18);
    theme.persistent = QColor(0xbdd6e6);
    theme.waiting = QColor(0xb3b9c4);
    theme.selection = QColor(0x10151d);
    theme.fills = fillsOf(lightTheme);
    return theme;
}

QString name(const QColor& color)
{
    return color.name(color.alpha() < 255 ? QColor::HexArgb : QColor::HexRgb);
}

// What the palette cannot express: radii, hairlines, flat controls. Colours come from the tokens.
QString styleSheet(const Theme& theme)
{
    const QColor hover = theme.isDark ? theme.control.lighter(118) : theme.control.darker(104);
    const QColor pressed = theme.isDark ? theme.control.lighter(135) : theme.control.darker(110);
    QString sheet = QStringLiteral(R"(
QToolTip { background: @control; color: @text; border: 1px solid @hairline; padding: 6px 8px; }
QPushButton, QToolButton { background: @control; color: @text; border: 1px solid transparent;
    border-radius: @radius; padding: 5px 12px; }
QPushButton:hover, QToolButton:hover { background: @hover; }
QPushButton:pressed, QToolButton:pressed, QPushButton:checked, QToolButton:checked { background: @pressed; }
QPushButton:focus, QToolButton:focus { border-color: @accent; }
QPushButton:disabled, QToolButton:disabled { color: @dim; }
QPushButton[primary="true"], QToolButton[primary="true"] { background: @accent; color: @onAccent; font-weight: 600; }
QPushButton[primary="true"]:disabled, QToolButton[primary="true"]:disabled { background: @control; color: @dim; }
QToolButton[side="true"]:checked:enabled { background: @accent; color: @onAccent; font-weight: 600; }
QToolButton::menu-indicator { image: none; width: 0; }
QToolButton[quiet="true"], QToolButton[link="true"] { background: transparent; }
QToolButton[crumb="true"] { padding: 5px 8px; text-align: left; }
QToolButton[low="true"] { padding: 1px 12px; }
QToolButton[quiet="true"]:hover { background: @control; }
QToolButton[quiet="true"] { color: @dim; padding: 0; }
QToolButton[link="true"] { color: @accent; font-weight: 600; padding: 5px 4px; }
QToolButton[link="true"]:hover { text-decoration: underline; }
QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox, QPlainTextEdit { background: @control; color: @text;
    border: 1px solid @hairline; border-radius: @radius; padding: 4px 8px; selection-background-color: @accent;
    selection-color: @onAccent; }
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus, QPlainTextEdit:focus { border-color: @accent; }
QLineEdit:disabled, QSpinBox:disabled, QDoubleSpinBox:disabled, QComboBox:disabled { color: @dim; }
QCheckBox::indicator, QAbstractItemView::indicator { width: 13px; height: 13px; background: @control; border: 1px solid @dim; border-radius: 3px; }
QCheckBox::indicator:focus { border-color: @accent; }
QCheckBox::indicator:checked, QAbstractItemView::indicator:checked { background: @accent; border-color: @accent; image: url(:/icons/check.svg); }
QCheckBox::indicator:disabled, QAbstractItemView::indicator:disabled { border-color: @hairline; }
QMessageBox QPushButton:default, QFileDialog QPushButton:default, QInputDialog QPushButton:default {
    background: @accent; color: @onAccent; font-weight: 600; }
QMessageBox QPushButton:default:focus, QFileDialog QPushButton:default:focus, QPushButton[primary="true"]:focus {
    border-color: @text; }
QFileDialog QPushButton:default:disabled { background: @control; color: @dim; }
QDialogButtonBox QPushButton, QMessageBox QPushButton, QPushButton[closing="true"] { min-width: 76px; }
QDialogButtonBox, QMessageBox { dialogbuttonbox-buttons-have-icons: 0; background: @panel; }
QFileDialog { background: @panel; }
QFileDialog QToolButton { padding: 4px; }
QFileDialog QTreeView, QFileDialog QListView, QInputDialog QListView { background: @lane; border: 1px solid @hairline; border-radius: @radius; }
QFileDialog QTreeView:focus, QFileDialog QListView:focus { border-color: @accent; }
QComboBox QAbstractItemView { background: @panel; color: @text; border: 1px solid @hairline; padding: 4px; outline: none; }
QRadioButton::indicator { width: 13px; height: 13px; background: @control; border: 1px solid @dim; border-radius: 7px; }
QRadioButton::indicator:focus { border-color: @accent; }
QRadioButton::indicator:checked { background: @accent; border: 3px solid @control; }
QSlider::groove:horizontal { height: 4px; background: @hairline; border-radius: 2px; }
QSlider::handle:horizontal { width: 14px; height: 14px; margin: -5px 0; background: @accent; border-radius: 7px; }
QSlider::handle:horizontal:focus { border: 1px solid @text; }
QComboBox::drop-down { border: none; width: 22px; }
QComboBox::down-arrow { image: url(:/icons/chevron.svg); width: 12px; height: 12px; }
QMenu { background: @panel; color: @text; border: 1px solid @hairline; padding: 4px; }
QMenu::item { padding: 5px 24px 5px 12px; border-radius: 4px; }
QMenu::item:selected { background: @control; }
QMenu::item:disabled { color: @dim; }
QMenu::separator { height: 1px; background: @hairline; margin: 4px 8px; }
QSplitter::handle { background: @background; }
QSplitter::handle:horizontal { width: 5px; border-left: 1px solid @hairline; }
QSplitter::handle:vertical { height: 5px; border-top: 1px solid @hairline; }
QSplitter::handle:hover { background: @control; }
QAbstractItemView { selection-background-color: @control; selection-color: @text; alternate-background-color: @panel; }
QHeaderView { background: @panel; border: none; }
QHeaderView::section { background: @panel; color: @dim; border: none; padding: 3px 6px 3px 2px; }
QTableCornerButton::section { background: @panel; border: none; }
QTabWidget::pane { border: none; }
QTabBar { background: transparent; qproperty-drawBase: 0; }
QTabBar::tab { background: transparent; color: @dim; border: none; border-bottom: 2px solid transparent; padding: 6px 2px; margin-right: 20px; }
QTabBar::tab:selected { color: @text; border-bottom-color: @accent; }
QTabBar::tab:focus { color: @accent; }
QScrollBar { background: transparent; border: none; }
QScrollBar:vertical { width: 10px; } QScrollBar:horizontal { height: 10px; }
QScrollBar::handle { background: @hairline; border-radius: 4px; margin: 1px; }
QScrollBar::handle:hover { background: @dim; }
QScrollBar::handle:vertical { min-height: 28px; } QScrollBar::handle:horizontal { min-width: 28px; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QProgressBar { background: @control; border: none; border-radius: 3px; text-align: center; color: @text; }
QProgressBar::chunk { background: @accent; border-radius: 3px; }
)");
    // No token is the beginning of another, so their order does not matter.
    const std::pair<const char*, QString> tokens[] = {{"@onAccent", name(theme.onAccent)},
                                                      {"@control", name(theme.control)},
                                                      {"@hairline", name(theme.hairline)},
                                                      {"@lane", name(theme.lane)},
                                                      {"@pressed", name(pressed)},
                                                      {"@accent", name(theme.accent)},
                                                      {"@panel", name(theme.panel)},
                                                      {"@background", name(theme.background)},
                                                      {"@hover", name(hover)},
                                                      {"@text", name(theme.text)},
                                                      {"@dim", name(theme.dim)},
                                                      {"@radius", QStringLiteral("%1px").arg(Theme::controlRadius)}};
    for (const auto& [token, value] : tokens)
        sheet.replace(QLatin1String(token), value);
    return sheet;
}

} // namespace

QColor Theme::fill(Op op, int chunk) const
{
    const QColor& base = fill(op);
    if (chunk % 2 == 0)
        return base;
    constexpr double white = 0.42;
    const auto mix = [](int value) { return static_cast<int>(value + white * (255 - value)); };
    return QColor(mix(base.red()), mix(base.green()), mix(base.blue()));
}

const Theme& Theme::dark()
{
    static const Theme theme = makeDark();
    return theme;
}

const Theme& Theme::light()
{
    static const Theme theme = makeLight();
    return theme;
}

const Theme& Theme::of(const QPalette& palette)
{
    return palette.color(QPalette::Window).lightnessF() < palette.color(QPalette::WindowText).lightnessF() ? dark()
                                                                                                           : light();
}

const Theme& Theme::of(const QWidget&)
{
    // During a theme change a widget is updated before its children, whose palettes are still old.
    return of(QApplication::palette());
}

QPalette Theme::palette() const
{
    QPalette palette;
    palette.setColor(QPalette::Window, background);
    palette.setColor(QPalette::WindowText, text);
    palette.setColor(QPalette::Base, panel);
    palette.setColor(QPalette::AlternateBase, lane);
    palette.setColor(QPalette::Text, text);
    palette.setColor(QPalette::PlaceholderText, dim);
    palette.setColor(QPalette::Button, control);
    palette.setColor(QPalette::ButtonText, text);
    palette.setColor(QPalette::BrightText, bad);
    palette.setColor(QPalette::Highlight, accent);
    palette.setColor(QPalette::HighlightedText, onAccent);
    palette.setColor(QPalette::Link, accent);
    palette.setColor(QPalette::LinkVisited, accent);
    palette.setColor(QPalette::ToolTipBase, control);
    palette.setColor(QPalette::ToolTipText, text);
    palette.setColor(QPalette::Light, control);
    palette.setColor(QPalette::Midlight, control);
    palette.setColor(QPalette::Mid, hairline);
    palette.setColor(QPalette::Dark, hairline);
    palette.setColor(QPalette::Shadow, background);
    for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, dim);
    return palette;
}

void Theme::apply(QApplication& application) const
{
    registerIcons();
    application.setStyle(new Style(*this));
    application.setFont(words());
    application.setPalette(palette());
    application.setStyleSheet(styleSheet(*this));
}

QFont Theme::words(TextSize size, QFont::Weight weight)
{
    return font({QStringLiteral("Inter"), QStringLiteral("DejaVu Sans"),
                 QFontDatabase::systemFont(QFontDatabase::GeneralFont).family()},
                QFont::SansSerif, size, weight);
}

QFont Theme::numbers(TextSize size, QFont::Weight weight)
{
    return font({QStringLiteral("JetBrains Mono"), QStringLiteral("DejaVu Sans Mono"),
                 QFontDatabase::systemFont(QFontDatabase::FixedFont).family()},
                QFont::Monospace, size, weight);
}

QFont Theme::heading()
{
    QFont font = words(TextSize::Small, QFont::DemiBold);
    font.setCapitalization(QFont::AllUppercase);
    font.setLetterSpacing(QFont::AbsoluteSpacing, 0.4);
    return font;
}

} // namespace pipewright
