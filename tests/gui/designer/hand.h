// SPDX-License-Identifier: GPL-3.0-or-later
// A person's mouse and keyboard. With a real window (PIPEWRIGHT_REAL_WINDOW is set, see realwalk.sh) xdotool moves the
// mouse and presses keys; otherwise the same is sent as events.
#pragma once

#include <QApplication>
#include <QMouseEvent>
#include <QProcess>
#include <QScreen>
#include <QTest>
#include <QWidget>

namespace pipewright::test {

class Hand {
public:
    Hand() : m_real(qEnvironmentVariableIsSet("PIPEWRIGHT_REAL_WINDOW")) {}
    bool isReal() const { return m_real; }

    void click(QWidget* widget, QPoint at)
    {
        if (m_real) {
            move(widget, at);
            tool({QStringLiteral("click"), QStringLiteral("1")});
        } else {
            QTest::mouseClick(widget, Qt::LeftButton, {}, at);
        }
    }
    void click(QWidget* widget) { click(widget, widget->rect().center()); }

    /// With `stops` intermediate positions.
    void drag(QWidget* widget, QPoint from, QPoint to, int stops = 8)
    {
        if (m_real)
            move(widget, from);
        button(widget, from, true);
        for (int stop = 1; stop <= stops; ++stop) {
            const QPoint at = from + (to - from) * stop / stops;
            if (m_real)
                move(widget, at);
            else
                send(widget, QEvent::MouseMove, at, Qt::NoButton, Qt::LeftButton);
        }
        button(widget, to, false);
    }

    /// "Down", "Return", "1", "ctrl+a".
    void key(const QString& name)
    {
        if (m_real) {
            tool({QStringLiteral("key"), QStringLiteral("--clearmodifiers"), name});
            return;
        }
        QWidget* target =
            QApplication::activePopupWidget() ? QApplication::activePopupWidget()->focusWidget() : nullptr;
        if (!target)
            target = QApplication::focusWidget() ? QApplication::focusWidget() : QApplication::activeWindow();
        const QKeySequence keys(name);
        QTest::keyClick(target, Qt::Key(keys[0].key()), keys[0].keyboardModifiers());
    }
    void type(const QString& text)
    {
        for (const QChar each : text)
            key(each);
    }

private:
    void tool(const QStringList& words)
    {
        QProcess::execute(QStringLiteral("xdotool"), words);
        QTest::qWait(80); // until the display server has notified the window
    }
    void move(QWidget* widget, QPoint at)
    {
        const QPoint there = widget->mapToGlobal(at) * widget->devicePixelRatioF(); // of the screen, not of the window
        tool({QStringLiteral("mousemove"), QString::number(there.x()), QString::number(there.y())});
    }
    void button(QWidget* widget, QPoint at, bool down)
    {
        if (m_real)
            tool({down ? QStringLiteral("mousedown") : QStringLiteral("mouseup"), QStringLiteral("1")});
        else if (down)
            send(widget, QEvent::MouseButtonPress, at, Qt::LeftButton, Qt::LeftButton);
        else
            send(widget, QEvent::MouseButtonRelease, at, Qt::LeftButton, Qt::NoButton);
    }
    static void send(QWidget* widget, QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons held)
    {
        QMouseEvent event(type, at, widget->mapToGlobal(at), button, held, Qt::NoModifier);
        QApplication::sendEvent(widget, &event);
    }

    bool m_real;
};

} // namespace pipewright::test
