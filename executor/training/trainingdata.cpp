// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/trainingdata.h"

#include "core/base/diagnostic.h"
#include "core/presets/presets.h"
#include "executor/training/chunkdata.h"
#include "executor/training/encoderdata.h"
#include "executor/training/picturedata.h"
#include "executor/training/textdata.h"
#include "executor/training/tokendata.h"

namespace pipewright {

namespace {

/// Shows a falling loss without any file: numbers in words, repeated, without equal consecutive lines.
std::string builtInText()
{
    static constexpr const char* words[] = {"zero", "one", "two",   "three", "four",
                                            "five", "six", "seven", "eight", "nine"};
    std::string text;
    for (int number = 0; number < 3000; ++number) {
        for (const char digit : std::to_string(number))
            text.append(words[digit - '0']).append(" ");
        text.append("comes before ");
        for (const char digit : std::to_string(number + 1))
            text.append(words[digit - '0']).append(" ");
        text.append("\n");
    }
    return text;
}

TextData textOf(const std::string& path, const ModelShape& shape, std::uint64_t seed)
{
    return path.empty() ? TextData::fromText(builtInText(), "built-in text", shape, seed)
                        : TextData::fromPath(path, shape, seed);
}

ChunkData chunksOf(const std::string& path, const ModelShape& shape, std::uint64_t seed)
{
    return ChunkData::fromFolder(path.empty() ? findResourceDirectory() : path, shape, seed);
}

/// Text, or a file of tokens.
SplitData splitTokens(const std::string& path, const ModelShape& shape, std::uint64_t seed, int microbatches)
{
    if (TokenData::isTokenFile(path)) {
        const TokenData whole = TokenData::fromFile(path, shape, seed, microbatches);
        return {std::make_unique<TokenData>(whole.part(shape, false, seed)),
                std::make_unique<TokenData>(whole.part(shape, true, 1))};
    }
    const TextData whole = textOf(path, shape, seed);
    const std::size_t cut = whole.text().size() - whole.text().size() / 10;
    return {std::make_unique<TextData>(TextData::fromText(whole.text().substr(0, cut), whole.source(), shape, seed)),
            std::make_unique<TextData>(
                TextData::fromText(whole.text().substr(cut), whole.source() + ", held back", shape, 1))};
}

std::unique_ptr<TrainingData> tokensOf(const std::string& path, const ModelShape& shape, std::uint64_t seed,
                                       int microbatches)
{
    if (TokenData::isTokenFile(path))
        return std::make_unique<TokenData>(TokenData::fromFile(path, shape, seed, microbatches));
    return std::make_unique<TextData>(textOf(path, shape, seed));
}

std::unique_ptr<TrainingData> picturesOf(const std::string& path, const ModelShape& shape, std::uint64_t seed)
{
    if (!path.empty())
        throw Error(path, "a vision transformer's pictures are drawn by the program, and no files are read",
                    "leave --data out");
    return std::make_unique<PictureData>(shape, seed);
}

[[noreturn]] void refuseTable()
{
    throw Error("model.architecture", "a table of layers has nothing to train on", "run it with --synthetic");
}

} // namespace

std::unique_ptr<TrainingData> loadTrainingData(const std::string& path, const ModelShape& shape, std::uint64_t seed,
                                               int microbatches)
{
    switch (shape.architecture) {
    case Architecture::Decoder: return tokensOf(path, shape, seed, microbatches);
    case Architecture::Encoder:
        return std::make_unique<EncoderData>(tokensOf(path, shape, seed, microbatches), shape, seed);
    case Architecture::Vision: return picturesOf(path, shape, seed);
    case Architecture::Classifier: return std::make_unique<ChunkData>(chunksOf(path, shape, seed));
    case Architecture::Table: break;
    }
    refuseTable();
}

SplitData loadSplitData(const std::string& path, const ModelShape& shape, std::uint64_t seed, int microbatches)
{
    switch (shape.architecture) {
    case Architecture::Decoder: return splitTokens(path, shape, seed, microbatches);
    case Architecture::Encoder: {
        SplitData text = splitTokens(path, shape, seed, microbatches);
        return {std::make_unique<EncoderData>(std::move(text.training), shape, seed),
                std::make_unique<EncoderData>(std::move(text.heldBack), shape, 1)};
    }
    case Architecture::Vision: // held-out pictures come from another seed
        return {picturesOf(path, shape, seed), picturesOf(path, shape, ~seed)};
    case Architecture::Classifier: {
        const ChunkData whole = chunksOf(path, shape, seed);
        return {std::make_unique<ChunkData>(whole.part(shape, false, seed)),
                std::make_unique<ChunkData>(whole.part(shape, true, 1))};
    }
    case Architecture::Table: break;
    }
    refuseTable();
}

} // namespace pipewright
