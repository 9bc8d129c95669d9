// SPDX-License-Identifier: GPL-3.0-or-later
// Indices of devices, stages and microbatches that the compiler tells apart, and the vectors that they index.
// A plain whole number, as blocks and files carry it, becomes any of them; one of them never becomes another, so that
// byDevice[stage] does not compile where `stage` is a StageIndex. Costs what int and std::vector cost; as there,
// nothing is checked when the program runs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pipewright {

enum class Indexes { Device, Stage, Microbatch };

template<Indexes what>
class Index {
public:
    constexpr Index() = default;
    constexpr Index(std::integral auto number) : m_number(static_cast<std::int32_t>(number)) {}

    constexpr operator std::int32_t() const { return m_number; }
    constexpr Index& operator++()
    {
        ++m_number;
        return *this;
    }

private:
    std::int32_t m_number = 0;
};

using DeviceIndex = Index<Indexes::Device>;
using StageIndex = Index<Indexes::Stage>;
using MicrobatchIndex = Index<Indexes::Microbatch>;

/// The indices from 0 on, for a loop: see Indexed::indices().
template<class Key>
class IndicesBelow {
public:
    class Iterator {
    public:
        constexpr explicit Iterator(Key at) : m_at(at) {}
        constexpr Key operator*() const { return m_at; }
        constexpr Iterator& operator++()
        {
            ++m_at;
            return *this;
        }
        constexpr bool operator!=(const Iterator& other) const { return m_at != other.m_at; }

    private:
        Key m_at;
    };
    constexpr explicit IndicesBelow(Key end) : m_end(end) {}
    constexpr Iterator begin() const { return Iterator(0); }
    constexpr Iterator end() const { return Iterator(m_end); }

private:
    Key m_end;
};

/// A vector with one value for each index.
template<class Key, class T>
class Indexed {
public:
    Indexed() = default;
    explicit Indexed(int count, const T& value = T()) : m_values(count, value) {}

    decltype(auto) operator[](Key index) { return m_values[index]; }
    decltype(auto) operator[](Key index) const { return m_values[index]; }
    void push_back(T value) { m_values.push_back(std::move(value)); }
    void fill(const T& value) { m_values.assign(m_values.size(), value); }

    int size() const { return static_cast<int>(m_values.size()); }
    IndicesBelow<Key> indices() const { return IndicesBelow<Key>(size()); }
    auto begin() { return m_values.begin(); }
    auto end() { return m_values.end(); }
    auto begin() const { return m_values.begin(); }
    auto end() const { return m_values.end(); }

private:
    std::vector<T> m_values;
};

template<class T>
using ByDevice = Indexed<DeviceIndex, T>;
template<class T>
using ByStage = Indexed<StageIndex, T>;
template<class T>
using ByMicrobatch = Indexed<MicrobatchIndex, T>;

/// A value for each pair of indices, row by row: byStageAndMicrobatch(stage, microbatch).
template<class Row, class Column, class T>
class IndexedTable {
public:
    IndexedTable() = default;
    IndexedTable(int rows, int columns, const T& value = T()) : m_columns(columns), m_values(rows * m_columns, value) {}

    decltype(auto) operator()(Row row, Column column) { return m_values[row * m_columns + column]; }
    decltype(auto) operator()(Row row, Column column) const { return m_values[row * m_columns + column]; }
    std::size_t size() const { return m_values.size(); }

private:
    std::size_t m_columns = 0;
    std::vector<T> m_values;
};

template<class T>
using ByStageAndMicrobatch = IndexedTable<StageIndex, MicrobatchIndex, T>;

} // namespace pipewright
