// SPDX-License-Identifier: GPL-3.0-or-later
// A small picture of the building block that the current schedule repeats, with its interval and memory bound; a click
// or Return opens the editor. For other schedules it offers to draw one.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

#include <optional>

class QLabel;

namespace pipewright {

/// The design's own building block, else its family's; nothing for other schedules.
std::optional<BuildingBlock> blockOf(const Design& design);

class BuildingBlockPreview : public QWidget {
    Q_OBJECT

public:
    explicit BuildingBlockPreview(Document& document, QWidget* parent = nullptr);
    QString caption() const;

Q_SIGNALS:
    void opened(); ///< the user wants to edit it

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refresh();

    Document& m_document;
    QWidget* m_picture;
    QLabel* m_caption;
    std::optional<BuildingBlock> m_block;
};

} // namespace pipewright
