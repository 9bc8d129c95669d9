// SPDX-License-Identifier: GPL-3.0-or-later
// The windows beside the main one, as a table with a row for each way to open one: menus, the list of shortcuts, the
// command palette, restoring and the tests read it. A window is created on first use, keeps its state while hidden and
// its frame between sessions, and changes the document only through its undo stack.
#pragma once

#include "core/design/design.h"

#include <QKeySequence>
#include <QObject>
#include <QString>

#include <cstdint>
#include <map>
#include <vector>

class QSettings;
class QWidget;

namespace pipewright {

class Document;
class TimelineView;
class WindowActions;
class WindowFrames;

struct OtherWindow {
    enum class Menu : std::uint8_t { Explore, Schedule };
    enum class Undo : std::uint8_t { Shared, Own }; ///< Shared: the main window's undo and redo work in it
    /// What windows are made of.
    struct Surroundings {
        Document& document;
        TimelineView& timeline;
        QString program; ///< the binary that runs designs; empty: this one
        QWidget* parent;
        Design opened = {}; ///< the design as opened or made, before any edit
    };
    const QMetaObject* type; ///< of the window
    const char* key;         ///< names the window in the settings
    QString text;            ///< of the action that opens it
    QKeySequence shortcut;
    QString tip;
    QWidget* (*make)(const Surroundings&);
    Menu menu = Menu::Explore;
    Undo undo = Undo::Shared;
    void (*then)(QWidget&) = nullptr; ///< another way to open a window: done once it is open
};
const std::vector<OtherWindow>& otherWindows();

class OtherWindows : public QObject {
public:
    OtherWindows(const OtherWindow::Surroundings& surroundings, const WindowActions& actions, QSettings& settings,
                 WindowFrames& frames);
    /// Null until it was opened.
    template<typename Window>
    Window* find() const
    {
        return static_cast<Window*>(find(Window::staticMetaObject));
    }
    template<typename Window>
    Window& open()
    {
        return static_cast<Window&>(open(Window::staticMetaObject));
    }
    /// Puts a window that is not shown into a part of the main one; open() makes it a window again. It goes back once
    /// it is closed while that part is shown.
    template<typename Window>
    Window& putInto(QWidget& place)
    {
        return static_cast<Window&>(putInto(Window::staticMetaObject, place));
    }
    void restore();    ///< those that were open at the end of the last session
    void endSession(); ///< hides them

private:
    QWidget* find(const QMetaObject& type) const;
    QWidget& open(const QMetaObject& type);
    QWidget& putInto(const QMetaObject& type, QWidget& place);
    QWidget& made(const OtherWindow& row);
    QWidget& open(const OtherWindow& row);

    OtherWindow::Surroundings m_surroundings;
    const WindowActions& m_actions;
    QSettings& m_settings;
    WindowFrames& m_frames;
    std::map<const QMetaObject*, QWidget*> m_windows;
};

/// In front of all others.
void bringUp(QWidget& window);

} // namespace pipewright
