// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/sideswitch.h"

#include "gui/widgets/layouts.h"

#include <QActionGroup>
#include <QSettings>
#include <QToolButton>

namespace pipewright {
namespace {

constexpr char sideKey[] = "side";

/// As it is written in the settings.
QString keyOf(Side side)
{
    switch (side) {
    case Side::Predicted: return QStringLiteral("predicted");
    case Side::Measured: return QStringLiteral("measured");
    case Side::Both: break;
    }
    return QStringLiteral("both");
}

} // namespace

SideSwitch::SideSwitch(Document& document, QSettings& settings, QWidget* parent)
    : QWidget(parent), m_document(document), m_settings(settings), m_actions(new QActionGroup(this))
{
    setAccessibleName(tr("Side of the numbers"));
    auto* layout = makeLayout<QHBoxLayout>(this, {0, 0, 0, 0}, 1);
    const struct {
        Side side;
        QString text, tip;
        Qt::Key key;
    } choices[] = {
        {Side::Predicted, tr("Predicted"), tr("Lanes, memory, idle time and every number as predicted"), Qt::Key_1},
        {Side::Measured, tr("Measured"), tr("The same as the overlaid run recorded them"), Qt::Key_2},
        {Side::Both, tr("Both"), tr("Measured filled, predicted as an outline; numbers as predicted → measured"),
         Qt::Key_3}};
    const QString wanted = settings.value(QLatin1String(sideKey)).toString();
    for (const auto& choice : choices) {
        auto* action = new QAction(choice.text, m_actions);
        action->setCheckable(true);
        action->setShortcut(choice.key);
        action->setToolTip(tr("%1 (%2)").arg(choice.tip, action->shortcut().toString(QKeySequence::NativeText)));
        action->setData(static_cast<int>(choice.side));
        connect(action, &QAction::triggered, this, [this, side = choice.side] {
            m_document.setSide(side);
            m_settings.setValue(QLatin1String(sideKey), keyOf(side));
        });
        auto* button = new QToolButton(this);
        button->setDefaultAction(action);
        button->setFocusPolicy(Qt::TabFocus);
        button->setFixedHeight(28);
        button->setProperty("side", true);
        button->setAccessibleName(choice.text);
        button->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
        layout->addWidget(button, 1);
        if (keyOf(choice.side) == wanted)
            m_document.setSide(choice.side);
    }
    connect(&m_document, &Document::sideChanged, this, &SideSwitch::refresh);
    connect(&m_document, &Document::overlayChanged, this, &SideSwitch::refresh);
    refresh();
}

QAction* SideSwitch::action(Side side) const
{
    for (QAction* each : m_actions->actions())
        if (each->data().toInt() == static_cast<int>(side))
            return each;
    return nullptr;
}

void SideSwitch::refresh()
{
    // Without a recording everything is predicted, and the switch says so.
    action(m_document.side())->setChecked(true);
    m_actions->setEnabled(m_document.overlay() != nullptr);
}

} // namespace pipewright

#include "moc_sideswitch.cpp"
