// SPDX-License-Identifier: GPL-3.0-or-later
// The windows beside the main one in which other schedules are looked for. Each is made once, keeps its
// state while hidden, and changes the document only through the document's undo stack.
#include "gui/dialogs/blockeditor.h"
#include "gui/dialogs/compare.h"
#include "gui/mainwindow.h"

namespace pipewright {

namespace {

void bringUp(QWidget& window)
{
    window.show();
    window.raise();
    window.activateWindow();
}

} // namespace

void MainWindow::editBlock()
{
    if (!m_blockEditor)
        m_blockEditor = new BlockEditor(m_document, this);
    bringUp(*m_blockEditor);
}

void MainWindow::compare()
{
    if (!m_compare) {
        m_compare = new CompareWindow(m_document, this);
        m_compare->setOpened(m_opened);
    }
    bringUp(*m_compare);
}

} // namespace pipewright
