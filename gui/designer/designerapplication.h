// SPDX-License-Identifier: GPL-3.0-or-later
// The application of the designer. An exception in an event handler, mostly for lack of memory, would end the
// process and lose unsaved work. Here it is shown as a message instead, after every open design was autosaved.
#pragma once

#include <QApplication>
#include <QPointer>

#include <exception>
#include <memory>

class QMessageBox;
class QSettings;

namespace pipewright {

class SystemTheme;

class DesignerApplication : public QApplication {
    Q_OBJECT

public:
    DesignerApplication(int& argc, char** argv);
    ~DesignerApplication() override;
    bool notify(QObject* receiver, QEvent* event) override;
    /// The look that the person chose, else the desktop's, followed while it changes. `system` is kept.
    void followTheme(std::unique_ptr<SystemTheme> system);
    /// The other look. One that the desktop has, too, is no choice: it is followed again.
    static void switchTheme(QSettings& settings);

private:
    void tell(const std::exception& error);

    std::unique_ptr<SystemTheme> m_system;
    QPointer<QMessageBox> m_message; ///< one at a time: what fails once may fail with each repaint
    std::unique_ptr<char[]> m_reserve;
};

} // namespace pipewright
