// SPDX-License-Identifier: GPL-3.0-or-later
// The application of the designer. An exception in an event handler, mostly for lack of memory, would end the
// process and lose unsaved work. Here it is shown as a message instead, after every open design was autosaved.
#pragma once

#include <QApplication>
#include <QPointer>

#include <exception>
#include <memory>

class QMessageBox;

namespace pipewright {

class DesignerApplication : public QApplication {
    Q_OBJECT

public:
    DesignerApplication(int& argc, char** argv);
    ~DesignerApplication() override;
    bool notify(QObject* receiver, QEvent* event) override;

private:
    void tell(const std::exception& error);

    QPointer<QMessageBox> m_message; ///< one at a time: what fails once may fail with each repaint
    std::unique_ptr<char[]> m_reserve;
};

} // namespace pipewright
