// SPDX-License-Identifier: GPL-3.0-or-later
// The design's title as a path, model › cluster › schedule: each part opens its page. Its width
// follows the window and not the text, so that the buttons behind it stay where they are.
#pragma once

#include <QWidget>

#include <array>

class QToolButton;

namespace pipewright {

struct Design;

class Breadcrumb : public QWidget {
    Q_OBJECT

public:
    enum Part { Model, Cluster, Family };
    static constexpr int partCount = 3;

    explicit Breadcrumb(QWidget* parent = nullptr);
    void showDesign(const Design& design);
    QString text(Part part) const { return m_texts[part]; } ///< the whole of it, not only what fits
    QToolButton* button(Part part) const { return m_buttons[part]; }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void fit();

    std::array<QToolButton*, partCount> m_buttons{};
    std::array<QString, partCount> m_texts;
};

} // namespace pipewright
