// SPDX-License-Identifier: GPL-3.0-or-later
// The building block that the present schedule repeats, small, with its interval and its memory bound; a
// click or Return opens the editor on it. Schedules that are not made of a block offer to draw one.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

#include <optional>

class QLabel;

namespace pipewright {

/// The design's own block, else the one that its family repeats; nothing for other schedules.
std::optional<BuildingBlock> blockOf(const Design& design);

class BlockPreview : public QWidget {
    Q_OBJECT

public:
    explicit BlockPreview(Document& document, QWidget* parent = nullptr);
    QString caption() const;

Q_SIGNALS:
    void opened(); ///< the person wants to edit it

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
