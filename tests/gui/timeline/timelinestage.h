// SPDX-License-Identifier: GPL-3.0-or-later
// A shown timeline and real events for it, shared by the tests of TimelineView.
#pragma once

#include "core/schedule/edits.h"
#include "gui/inspector/inspector.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/section.h"
#include "makers/designs.h"

#include <QAction>
#include <QApplication>
#include <QContextMenuEvent>
#include <QDropEvent>
#include <QMenu>
#include <QMimeData>
#include <QMouseEvent>
#include <QSpinBox>
#include <QTest>
#include <QWheelEvent>

#include <memory>

namespace pipewright::testing {

// A shown view with a document; mouse events carry the buttons that a real drag carries.
struct Stage {
    explicit Stage(Design design = test::familyDesign())
    {
        document.reset(std::move(design));
        view = std::make_unique<TimelineView>(document);
        view->resize(1128, 350);
        view->show();
        view->activateWindow();
        view->setFocus();
        // Shortcuts work in the active window only.
        if (!QTest::qWaitForWindowActive(view.get()))
            qFatal("the window did not become active");
    }
    void mouse(QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons,
               Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        QMouseEvent event(type, at, view->viewport()->mapToGlobal(at), button, buttons, modifiers);
        QApplication::sendEvent(view->viewport(), &event);
    }
    void press(QPoint at, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        mouse(QEvent::MouseButtonPress, at, Qt::LeftButton, Qt::LeftButton, modifiers);
    }
    void click(QPoint at, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        press(at, modifiers);
        release(at, modifiers);
    }
    void move(QPoint at, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        mouse(QEvent::MouseMove, at, Qt::NoButton, Qt::LeftButton, modifiers);
    }
    void release(QPoint at, Qt::KeyboardModifiers modifiers = Qt::NoModifier)
    {
        mouse(QEvent::MouseButtonRelease, at, Qt::LeftButton, Qt::NoButton, modifiers);
    }
    void wheel(QPoint at, int notches, Qt::KeyboardModifiers modifiers)
    {
        QWheelEvent event(at, view->viewport()->mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, modifiers,
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(view->viewport(), &event);
    }
    QPoint centre(const Block& block) const { return view->rectOfBlock(block).center(); }
    /// Just left of a block's middle: dropping here means "before it".
    QPoint before(const Block& block) const
    {
        const QRect rect = view->rectOfBlock(block);
        return {rect.left() + rect.width() / 4, rect.center().y()};
    }
    bool drop(const Block& block, QPoint at)
    {
        QMimeData data;
        data.setData(QLatin1String(blockMimeType), QByteArray::fromStdString(toString(block)));
        QDragEnterEvent enter(at, Qt::MoveAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(view->viewport(), &enter);
        QDragMoveEvent over(at, Qt::MoveAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(view->viewport(), &over);
        QDropEvent drop(at, Qt::MoveAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(view->viewport(), &drop);
        return drop.isAccepted();
    }
    void rightClick(QPoint at)
    {
        QContextMenuEvent event(QContextMenuEvent::Mouse, at, view->viewport()->mapToGlobal(at));
        QApplication::sendEvent(view->viewport(), &event);
    }
    int indexOf(const Block& block) const { return find(document.design().schedule, block).index; }
    /// The index of a microbatch's forward in each stage's device's order.
    std::vector<int> forwardsOf(int microbatch) const
    {
        std::vector<int> all;
        for (int s = 0; s < document.design().schedule.stages(); ++s)
            all.push_back(indexOf({Op::F, s, microbatch, 0}));
        return all;
    }
    int deviceOf(const Block& block) const { return find(document.design().schedule, block).device; }

    Document document;
    std::unique_ptr<TimelineView> view;
};

inline const Block w10{Op::W, 1, 0, 0}, w13{Op::W, 1, 3, 0}, i13{Op::I, 1, 3, 0}, f11{Op::F, 1, 1, 0},
    f10{Op::F, 1, 0, 0};

/// The inspector of a stage's view, in a window of its own with the keyboard focus: otherwise the timeline takes the
/// arrow keys.
struct ShownInspector : Inspector {
    explicit ShownInspector(Stage& stage) : Inspector(*stage.view)
    {
        editSection().setOpen(true);
        viewSection().setOpen(true);
        show();
        activateWindow();
        if (!QTest::qWaitForWindowActive(this))
            qFatal("the window did not become active");
    }
    /// Null when there is none of that accessible name.
    template<typename Widget>
    Widget* named(const char* name) const
    {
        for (Widget* child : findChildren<Widget*>())
            if (child->accessibleName() == QLatin1String(name))
                return child;
        return nullptr;
    }
    QSpinBox* field(const char* name) const { return named<QSpinBox>(name); }
};

/// Replaces the text of a field by typing, and finishes the edit.
template<typename Field>
void type(Field* field, const char* text)
{
    field->setFocus();
    field->selectAll();
    QTest::keyClicks(field, QLatin1String(text));
    QTest::keyClick(field, Qt::Key_Return);
}

/// Null when none is open.
inline QMenu* openMenu()
{
    for (QWidget* widget : QApplication::topLevelWidgets())
        if (auto* menu = qobject_cast<QMenu*>(widget); menu && menu->isVisible())
            return menu;
    return nullptr;
}

/// The entry of a menu whose text contains `text`; null when there is none.
inline QAction* entry(const QMenu* menu, const QString& text)
{
    for (QAction* action : menu->actions())
        if (action->text().contains(text))
            return action;
    return nullptr;
}

} // namespace pipewright::testing
