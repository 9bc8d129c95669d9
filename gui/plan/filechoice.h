// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for a file without waiting for the answer: the search goes on, and so does the window.
#pragma once

#include <QFileDialog>

#include <functional>

namespace pipewright {

/// `kinds`: a filter of QFileDialog. `name`: of a file to be written; empty: one that is there is opened.
inline void chooseFile(QWidget* parent, const QString& title, const QString& kinds, const QString& name,
                       std::function<void(const QString& path)> then)
{
    auto* dialog = new QFileDialog(parent, title, {}, kinds);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(name.isEmpty() ? QFileDialog::ExistingFile : QFileDialog::AnyFile);
    dialog->setAcceptMode(name.isEmpty() ? QFileDialog::AcceptOpen : QFileDialog::AcceptSave);
    if (!name.isEmpty())
        dialog->selectFile(name);
    QObject::connect(dialog, &QFileDialog::fileSelected, parent, std::move(then));
    dialog->open();
}

} // namespace pipewright
